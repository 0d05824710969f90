//! Workloads that select a pipeline, as the API server stores them.

use kube::Client;
use kube::api::{Api, ApiResource, ListParams};
use lockstep_controller::CustomObject;
use lockstep_vector_api::selection::{self, SelectablePipeline};
use serde_json::Value;

use lockstep_vector_api::WorkloadKind;

/// Workload that selects a pipeline.
pub(crate) struct SelectingWorkload<K> {
    /// Kind, namespace and name.
    pub(crate) name: String,
    pub(crate) object: K,
    pub(crate) raw: Value,
    /// If true, its owned objects are those of the present generation.
    pub(crate) is_reconciled: bool,
}

impl<K: WorkloadKind> SelectingWorkload<K> {
    /// Returns the workloads of a kind that select a pipeline, if the kind is installed. `keys` are the index keys of the
    /// pipeline.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub(crate) async fn all(
        client: &Client,
        installed_kinds: &[ApiResource],
        keys: &[String],
        pipeline: &SelectablePipeline,
    ) -> Result<Vec<Self>, String> {
        let mut installed = installed_kinds.iter();
        let Some(resource) = installed.find(|it| it.group == K::GROUP && it.kind == K::KIND) else {
            return Ok(Vec::new());
        };
        let objects: Api<CustomObject> = Api::all_with(client.clone(), resource);
        // The cache of the API server suffices: a workload that was created just now has no validator yet.
        let list = objects.list(&ListParams::default().match_any()).await;
        let list =
            list.map_err(|error| format!("the {} cannot be listed: {error}", resource.plural))?;
        let mut selecting = Vec::new();
        for object in list.items {
            let mut raw =
                serde_json::to_value(object.into_inner()).map_err(|error| error.to_string())?;
            // Items of a list have no type.
            raw["kind"] = K::KIND.into();
            if is_selecting::<K>(&raw, keys, pipeline) {
                selecting.push(Self::new(raw)?);
            }
        }
        Ok(selecting)
    }
}

fn is_selecting<K: WorkloadKind>(
    raw: &Value,
    keys: &[String],
    pipeline: &SelectablePipeline,
) -> bool {
    let own = selection::keys(raw, K::ROLE);
    // The second key finds pipelines that the workload ran before.
    let is_together = own.first().is_some_and(|key| keys.contains(key));
    let is_deleted = raw.pointer("/metadata/deletionTimestamp").is_some();
    is_together && !is_deleted && selection::selects(raw, pipeline)
}

impl<K: WorkloadKind> SelectingWorkload<K> {
    fn new(raw: Value) -> Result<Self, String> {
        let name = selection::workload_name(&raw);
        let object = serde_json::from_value(raw.clone());
        let object = object.map_err(|error| format!("{name} cannot be read: {error}"))?;
        let generation = &raw["metadata"]["generation"];
        let is_reconciled = raw["status"]["observedGeneration"] == *generation;
        Ok(Self {
            name,
            object,
            raw,
            is_reconciled,
        })
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::{Vector, VectorAggregator};
    use serde_json::json;

    use super::*;

    fn selects<K: WorkloadKind>(source: &str, metadata: &Value) -> bool {
        let pipeline = json!({
            "kind": "VectorPipeline",
            "metadata": {"name": "p", "namespace": "n", "labels": {"team": "a"}},
            "spec": {"sources": {"in": {"type": source}}},
        });
        let (keys, entry) = selection::index_selectable(&pipeline);
        let mut workload = json!({
            "kind": K::KIND, "metadata": {"name": "w", "namespace": "n"},
            "spec": {"selector": {"matchLabels": {"team": "a"}}},
        });
        for (field, value) in metadata.as_object().into_iter().flatten() {
            workload["metadata"][field] = value.clone();
        }
        is_selecting::<K>(&workload, &keys, &entry)
    }

    #[test]
    fn a_workload_is_asked_if_it_would_run_the_pipeline() {
        let other = json!({"namespace": "other"});
        let deleted = json!({"deletionTimestamp": "2026-01-05T10:00:00Z"});
        assert!(selects::<Vector>("kubernetes_logs", &json!({})));
        assert!(selects::<Vector>("kubernetes_logs", &other));
        assert!(!selects::<Vector>("kubernetes_logs", &deleted));
        assert!(!selects::<Vector>("http_server", &json!({})));
        assert!(selects::<VectorAggregator>("http_server", &json!({})));
        assert!(!selects::<VectorAggregator>("http_server", &other));
    }
}
