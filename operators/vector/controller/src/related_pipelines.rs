//! Related objects of a pipeline, from watches: other pipelines of the same Vector, and workloads.

use std::sync::Arc;

use kube::api::ApiResource;
use lockstep_controller::{ReconcileError, Reference, RelatedObjects, Watch};
use lockstep_vector_api::port_allocation;
use serde_json::Value;

/// Kinds of pipelines and of workloads that are related to a pipeline. Kinds that are not installed are left out.
pub(crate) struct RelatedPipelines {
    pipelines: Vec<ApiResource>,
    workloads: Vec<ApiResource>,
}

impl RelatedPipelines {
    pub(crate) fn among(installed: &[ApiResource]) -> Self {
        let of = |kinds: &[&str]| {
            let of_these = |resource: &&ApiResource| kinds.contains(&resource.kind.as_str());
            installed.iter().filter(of_these).cloned().collect()
        };
        let workloads: Vec<_> = of(port_allocation::WORKLOADS);
        Self {
            // Without workloads, pipelines share nothing.
            pipelines: if workloads.is_empty() {
                Vec::new()
            } else {
                of(port_allocation::PIPELINES)
            },
            workloads,
        }
    }

    /// Returns the watches. A changed pipeline triggers only the pipelines that share a port with it; a changed workload
    /// triggers the pipelines of its group: it may run others now, or have another release of Vector.
    pub(crate) fn watches(&self) -> Vec<Watch> {
        let pipelines = self.pipelines.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(port_allocation::keys(pipeline))
            })
            .index_by(port_allocation::index_pipeline)
        });
        let workloads = self.workloads.iter().map(|resource| {
            Watch::dynamic(resource.clone(), |pipeline| {
                references(port_allocation::workloads(pipeline))
            })
            .index_by(port_allocation::index_workload)
        });
        pipelines.chain(workloads).collect()
    }

    /// Returns what a pipeline shares with others.
    pub(crate) fn shared(
        &self,
        pipeline: &Value,
        related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        let Some(key) = port_allocation::workloads(pipeline) else {
            return Ok(Value::Null);
        };
        let workloads = indexed(related, &self.workloads, &[key])?;
        if workloads.is_empty() {
            return Ok(Value::Null);
        }
        let others = indexed(related, &self.pipelines, &port_allocation::keys(pipeline))?;
        Ok(port_allocation::shared(pipeline, &others, &workloads))
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
