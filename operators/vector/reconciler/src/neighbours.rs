//! What a pipeline shares a Vector with, as the watches bring it.

use std::sync::Arc;

use controller::{ReconcileError, Reference, RelatedObjects, Watch};
use kube::api::ApiResource;
use serde_json::Value;
use vector_rules::sharing;

/// The kinds whose objects a pipeline may share a Vector with, and those who run it. A kind that is not installed has
/// no objects.
pub(crate) struct RelatedPipelines {
    pipelines: Vec<ApiResource>,
    runners: Vec<ApiResource>,
}

impl RelatedPipelines {
    pub(crate) fn among(installed: &[ApiResource]) -> Self {
        let of = |kinds: &[&str]| {
            let of_these = |resource: &&ApiResource| kinds.contains(&resource.kind.as_str());
            installed.iter().filter(of_these).cloned().collect()
        };
        let runners: Vec<_> = of(sharing::RUNNERS);
        Self {
            // Where nobody runs pipelines, they share nothing.
            pipelines: if runners.is_empty() {
                Vec::new()
            } else {
                of(sharing::PIPELINES)
            },
            runners,
        }
    }

    /// Only who shares a port with another is asked again when that changes, and only who listens at all when those
    /// change who run it.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        let pipelines = self.pipelines.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(sharing::keys(pipeline))
            })
            .index_by(sharing::told_of_pipeline)
        });
        let runners = self.runners.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(sharing::runners(pipeline))
            })
            .index_by(sharing::told_of_runner)
        });
        pipelines.chain(runners).collect()
    }

    /// What a pipeline shares with others.
    pub(crate) fn shared(
        &self,
        pipeline: &Value,
        related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        let Some(key) = sharing::runners(pipeline) else {
            return Ok(Value::Null);
        };
        let runners = told(related, &self.runners, &[key])?;
        if runners.is_empty() {
            return Ok(Value::Null);
        }
        let others = told(related, &self.pipelines, &sharing::keys(pipeline))?;
        Ok(sharing::shared(pipeline, &others, &runners))
    }
}

/// What is told of those of several kinds that are found under any of these keys.
fn told<T: Send + Sync + 'static>(
    related: RelatedObjects<'_>,
    resources: &[ApiResource],
    keys: &[String],
) -> Result<Vec<Arc<T>>, ReconcileError> {
    let mut told = Vec::new();
    for resource in resources {
        told.extend(related.by_index(resource, keys)?);
    }
    Ok(told)
}

fn references(keys: impl IntoIterator<Item = String>) -> Vec<Reference> {
    keys.into_iter().map(Reference::IndexKey).collect()
}
