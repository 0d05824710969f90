//! Search for what earlier instances have left, before the first instance of an object is created: the user most likely expects
//! their data.
//!
//! instance of an earlier object? → status erased? → data of an instance of this object? → data of an earlier object?
//!
//! A complete status proves that this object has had no instance.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use lockstep_cloud_database_api::{CloudDatabase, REPLACES_INSTANCE};
use lockstep_controller::OperatorEvent;
use tokio::time::Instant;

use crate::aws::call_error::CallError;
use crate::aws::error_code::Class;
use crate::aws::rds_client::left::Left;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags;
use crate::origin::creation::Origin;
use crate::origin::replacement::replaced;

/// Snapshots and retained automated backups.
#[derive(Default)]
struct LeftData {
    lists: Vec<Arc<[Left]>>,
    /// Error of a list that the controller may not read.
    denied: Option<CallError>,
}

impl LeftData {
    fn add(&mut self, list: Result<Arc<[Left]>, CallError>) -> Result<(), CallError> {
        match list {
            Ok(list) => self.lists.push(list),
            Err(error) if error.class() == Class::Access => self.denied = Some(error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = &Left> {
        self.lists.iter().flat_map(|list| list.iter())
    }
}

impl InstanceReconciler {
    /// Returns Events about what does not keep an instance from being created.
    ///
    /// # Errors
    ///
    /// An earlier object with the same namespace and name has an instance, or RDS has data of an instance of this object.
    pub(crate) async fn require_first(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &Record,
        origin: &Origin<'_>,
    ) -> Result<Vec<OperatorEvent>, StepError> {
        let replaced = replaced(object);
        let is_expected = |left: &Left| is_expected(left, &replaced, origin);
        let list = async || self.rds.instances_of_objects().await;
        let instances = self.listed_instances.after(created(object), list).await?;
        self.require_no_earlier(&instances, object, origin)?;
        if record.is_complete {
            return Ok(Vec::new());
        }
        let mut data = LeftData::default();
        let created = created(object);
        let snapshots = async || self.rds.snapshots_of_objects().await;
        data.add(self.listed_snapshots.after(created, snapshots).await)?;
        let backups = async || self.rds.backups_of_objects().await;
        data.add(self.listed_backups.after(created, backups).await)?;
        // An empty list proves nothing, and an empty instance would seem to be the lost one.
        data.add(self.rds.snapshots_left_by(id).await.map(Arc::from))?;
        data.add(self.rds.backups_left_by(id).await.map(Arc::from))?;
        let own: Vec<_> = data
            .iter()
            .filter(|left| is_of_object(left, id, object) && !is_expected(left))
            .collect();
        if !own.is_empty() {
            return Err(self.data_of_this_object(id, &own));
        }
        let mut earlier = data
            .iter()
            .filter(|left| self.is_earlier(left, object) && !is_expected(left));
        let earlier = earlier.next().map(data_of_earlier_object);
        let denied = data.denied.as_ref().map(unreadable);
        Ok(denied.into_iter().chain(earlier).collect())
    }

    /// Asks once more for the instances of earlier objects, `since` the region was recorded: one wrong answer must not lead to a
    /// second instance.
    ///
    /// # Errors
    ///
    /// An earlier object with the same namespace and name has an instance.
    pub(crate) async fn require_first_again(
        &self,
        object: &CloudDatabase,
        origin: &Origin<'_>,
        since: Instant,
    ) -> Result<(), StepError> {
        let list = async || self.rds.instances_of_objects().await;
        let instances = self.listed_instances.again(since, list).await?;
        self.require_no_earlier(&instances, object, origin)
    }

    fn require_no_earlier(
        &self,
        instances: &[Left],
        object: &CloudDatabase,
        origin: &Origin<'_>,
    ) -> Result<(), StepError> {
        let replaced = replaced(object);
        let mut instances = instances.iter();
        let earlier = instances
            .find(|left| self.is_earlier(left, object) && !is_expected(left, &replaced, origin));
        match earlier {
            Some(earlier) => Err(self.instance_of_earlier_object(earlier)),
            None => Ok(()),
        }
    }

    fn is_earlier(&self, left: &Left, object: &CloudDatabase) -> bool {
        tags::are_of_earlier_object(&left.tags, object, self.rds.cluster_name())
    }

    fn instance_of_earlier_object(&self, left: &Left) -> StepError {
        let Left {
            what,
            instance,
            resource_id,
            tags,
        } = left;
        let owner = tags::named_object(tags);
        self.stalled(
            "InstanceOfEarlierObject",
            format!(
                "{what} ({resource_id}) was created for another object with this namespace and name ({owner}): an earlier object, or an object of another cluster that may still use the database. No second instance is created, because it would not have its data. To take it over, create the object with `spec.adopt.identifier: {instance}`. To create a new instance as the spec says in addition, set the annotation {REPLACES_INSTANCE}={resource_id}. Clusters that share an account need different values of --cluster-name"
            ),
        )
    }

    fn data_of_this_object(&self, id: &str, left: &[&Left]) -> StepError {
        let list = |text: fn(&Left) -> &str| {
            let mut all: Vec<_> = left.iter().map(|left| text(left)).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let found = list(|left| &left.what).join(", ");
        let resource_ids = list(|left| &left.resource_id).join(",");
        self.stalled(
            "InstanceMissing",
            format!(
                "the status of the object was erased, its RDS instance '{id}' no longer exists, and RDS has data of it: {found}. No new instance is created, because it would not have this data. To get the data back, create another object with `spec.restoreFrom`. To create a new instance as the spec says, set the annotation {REPLACES_INSTANCE}={resource_ids}"
            ),
        )
    }
}

/// Checks whether the data belongs to the instance that is replaced, or to the source of the new instance.
fn is_expected(left: &Left, replaced: &BTreeSet<&str>, origin: &Origin<'_>) -> bool {
    let resource_id = left.resource_id.as_str();
    replaced.contains(resource_id) || origin.is(&left.instance, resource_id)
}

fn created(object: &CloudDatabase) -> Option<Timestamp> {
    object.creation_timestamp().map(|time| time.0)
}

/// Returns true for data of an instance of this object, whose identifier contains the UID.
fn is_of_object(left: &Left, id: &str, object: &CloudDatabase) -> bool {
    let owner = tags::owner_of(&left.tags).and_then(|owner| owner.uid);
    left.instance == id || (owner.is_some() && owner == object.metadata.uid.as_deref())
}

fn data_of_earlier_object(left: &Left) -> OperatorEvent {
    let owner = tags::named_object(&left.tags);
    OperatorEvent {
        is_warning: true,
        reason: "DataOfEarlierObject",
        note: format!(
            "RDS has data of an earlier object with this namespace and name: {} ({owner}). The new instance does not get it; to have it, create another object with `spec.restoreFrom`",
            left.what
        ),
    }
}

fn unreadable(error: &CallError) -> OperatorEvent {
    OperatorEvent {
        is_warning: true,
        reason: "EarlierDataUnreadable",
        note: format!(
            "the status of the object was erased, and the controller may not ask RDS for data of an earlier instance, which the new one does not get: {}",
            error.text()
        ),
    }
}
