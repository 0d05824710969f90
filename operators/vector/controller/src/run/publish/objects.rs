//! Owned objects of a workload, and the change that they make.

use lockstep_controller::ReconcileError;
use lockstep_vector_assembly::DataMoves;
use serde_json::Value;

use crate::owned::{self, Change, ChangeAction, Cluster, Publication};
use crate::run::collect::running_objects::Observed;
use crate::run::publish::contents;
use lockstep_vector_api::WorkloadKind;

/// Facts that decide the objects of a workload, besides what is published.
pub(crate) struct Objects<'a, K> {
    pub(crate) object: &'a K,
    pub(crate) cluster: Cluster,
    pub(crate) observed: &'a Observed,
    /// Pipelines whose configuration differs from the published one.
    pub(crate) changes: Vec<String>,
}

impl<K: WorkloadKind> Objects<'_, K> {
    /// Returns the desired objects, and the change that they make. `image` is that of an init container that has moved
    /// data: it has nothing to do any more, and goes with the next change that replaces the Pods.
    pub(crate) fn desired_with(
        &self,
        publication: &mut Publication,
        image: Option<&str>,
    ) -> Result<(Vec<Value>, Option<Change>), ReconcileError> {
        let without_container = self.desired(publication)?;
        let Some(image) = image else {
            return Ok(without_container);
        };
        publication.moved_data = Some(contents::moved(image, &DataMoves::default()));
        let with_container = self.desired(publication)?;
        let rolls = |change: &Change| change.action == ChangeAction::Roll;
        if with_container.1.as_ref().is_some_and(rolls) {
            return Ok(without_container);
        }
        Ok(with_container)
    }

    /// Returns the change that remains between the children of now and those of a planned publication, which come with the
    /// image of an init container that has moved data.
    pub(crate) fn planned_change(
        &self,
        mut publication: Publication,
        image: Option<&str>,
        children: &[Value],
        changes: Vec<String>,
    ) -> Option<Change> {
        let (planned, _) = self.desired_with(&mut publication, image).ok()?;
        self.observed.planned_change(children, &planned, changes)
    }

    fn desired(
        &self,
        publication: &Publication,
    ) -> Result<(Vec<Value>, Option<Change>), ReconcileError> {
        let aggregator = self.observed.aggregator();
        let objects = owned::objects(self.object, publication, &self.cluster, &aggregator);
        let objects = objects.map_err(|error| ReconcileError::Permanent {
            reason: "ObjectsInvalid",
            message: error.to_string(),
        })?;
        let change = self
            .observed
            .change(&objects.children, self.changes.clone());
        Ok((objects.children, change))
    }
}
