//! Related objects of a pipeline, from watches: other pipelines of the same Vector, and runners.

use std::sync::Arc;

use kube::api::ApiResource;
use lockstep_controller::{ReconcileError, Reference, RelatedObjects, Watch};
use lockstep_vector_api::port_allocation;
use serde_json::Value;

/// Kinds of pipelines and of runners that are related to a pipeline. Kinds that are not installed are left out.
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
        let runners: Vec<_> = of(port_allocation::RUNNERS);
        Self {
            // Without runners, pipelines share nothing.
            pipelines: if runners.is_empty() {
                Vec::new()
            } else {
                of(port_allocation::PIPELINES)
            },
            runners,
        }
    }

    /// Returns the watches. A changed pipeline triggers only the pipelines that share a port with it; a changed runner
    /// triggers the pipelines of its group: it may run others now, or have another release of Vector.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        let pipelines = self.pipelines.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(port_allocation::keys(pipeline))
            })
            .index_by(port_allocation::index_pipeline)
        });
        let runners = self.runners.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(port_allocation::runners(pipeline))
            })
            .index_by(port_allocation::index_runner)
        });
        pipelines.chain(runners).collect()
    }

    /// Returns what a pipeline shares with others.
    pub(crate) fn shared(
        &self,
        pipeline: &Value,
        related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        let Some(key) = port_allocation::runners(pipeline) else {
            return Ok(Value::Null);
        };
        let runners = indexed(related, &self.runners, &[key])?;
        if runners.is_empty() {
            return Ok(Value::Null);
        }
        let others = indexed(related, &self.pipelines, &port_allocation::keys(pipeline))?;
        Ok(port_allocation::shared(pipeline, &others, &runners))
    }
}

/// Returns the index entries of several kinds under any of these index keys.
fn indexed<T: Send + Sync + 'static>(
    related: RelatedObjects<'_>,
    resources: &[ApiResource],
    keys: &[String],
) -> Result<Vec<Arc<T>>, ReconcileError> {
    let mut indexed = Vec::new();
    for resource in resources {
        indexed.extend(related.by_index(resource, keys)?);
    }
    Ok(indexed)
}

fn references(keys: impl IntoIterator<Item = String>) -> Vec<Reference> {
    keys.into_iter().map(Reference::IndexKey).collect()
}
