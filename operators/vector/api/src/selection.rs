//! Selection: the pipelines that a workload runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::port_allocation::labels;
use crate::port_allocation::labels::Labels;
use crate::port_allocation::runner::Runner;
use crate::port_allocation::status_view::{
    ValidationState, former_role, is_being_deleted, role, text, together, validation_state,
};
use crate::types::runner_kind::RunnerKind;

/// Pipeline, as far as the workloads that may run it depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectablePipeline {
    /// Namespace; none for a cluster-scoped pipeline.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Annotations, without the one with which `kubectl apply` remembers the whole object.
    pub annotations: BTreeMap<String, String>,
    /// Spec.
    pub spec: Value,
    /// Role of the workloads that run it. None if no workload can.
    pub role: Option<RunnerKind>,
    /// If true, this generation was validated and is valid. Otherwise, the pipeline runs as it last ran.
    pub is_valid: bool,
    labels: Labels,
}

/// Returns the index entry of a pipeline: its groups of workloads, and what they need of it. The entry of a pipeline that
/// is being deleted is empty.
#[must_use]
pub fn index_selectable(pipeline: &Value) -> (Vec<String>, SelectablePipeline) {
    let metadata = &pipeline["metadata"];
    let role = role(pipeline);
    let groups = if is_being_deleted(pipeline) {
        BTreeSet::new()
    } else {
        // While a change is invalid, the pipeline runs as it last ran, where it last ran.
        let roles = role.into_iter().chain(former_role(pipeline));
        roles.map(|role| together(pipeline, role)).collect()
    };
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations = annotations
        .filter(|(name, _)| *name != "kubectl.kubernetes.io/last-applied-configuration")
        .map(|(name, value)| (name.clone(), text(value)));
    let entry = SelectablePipeline {
        namespace: metadata["namespace"].as_str().map(str::to_owned),
        name: text(&metadata["name"]),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        annotations: annotations.collect(),
        spec: pipeline["spec"].clone(),
        role,
        is_valid: matches!(validation_state(pipeline), ValidationState::Valid),
        labels: labels::of(pipeline.pointer("/metadata/labels")),
    };
    (groups.into_iter().collect(), entry)
}

/// Returns the group of a workload: the index key of the pipelines that it may run.
#[must_use]
pub fn group(workload: &Value, kind: RunnerKind) -> String {
    together(workload, kind)
}

/// Returns true if the selector of a workload selects a pipeline.
#[must_use]
pub fn selects(workload: &Value, pipeline: &SelectablePipeline) -> bool {
    Runner::new(workload).runs(&pipeline.labels)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pipeline(status: &Value) -> Value {
        json!({
            "kind": "VectorPipeline",
            "metadata": {
                "name": "p", "namespace": "n", "generation": 3, "labels": {"team": "a"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"},
            },
            "spec": {"sources": {"in": {"type": "kubernetes_logs"}}},
            "status": status,
        })
    }

    #[test]
    fn a_pipeline_is_valid_if_its_present_generation_was_validated() {
        for (observed, result, expected) in [(3, true, true), (2, true, false), (3, false, false)] {
            let status = json!({
                "observedGeneration": observed, "configCheckResult": result, "LastAppliedPipelineHash": 1,
            });
            let (groups, entry) = index_selectable(&pipeline(&status));
            assert_eq!(groups, ["agent"]);
            assert_eq!(entry.is_valid, expected, "{status}");
        }
    }

    #[test]
    fn a_pipeline_that_has_changed_its_role_is_still_in_its_former_group() {
        let status =
            json!({"observedGeneration": 2, "configCheckResult": true, "role": "aggregator"});
        let (groups, entry) = index_selectable(&pipeline(&status));
        assert_eq!(groups, ["agent", "aggregator n"]);
        assert_eq!(entry.role, Some(RunnerKind::Agent));
    }

    #[test]
    fn a_pipeline_that_is_being_deleted_has_no_group() {
        let mut deleted = pipeline(&Value::Null);
        deleted["metadata"]["deletionTimestamp"] = "2026-01-05T10:00:00Z".into();
        assert_eq!(index_selectable(&deleted).0, Vec::<String>::new());
    }

    #[test]
    fn labels_and_the_group_decide_what_a_workload_runs() {
        let (_, entry) = index_selectable(&pipeline(&Value::Null));
        assert_eq!(entry.annotations.keys().collect::<Vec<_>>(), ["kept"]);
        let workload = |labels: &Value| {
            json!({"kind": "Vector", "metadata": {"name": "v", "namespace": "n"},
                "spec": {"selector": {"matchLabels": labels}}})
        };
        assert_eq!(group(&workload(&json!({})), RunnerKind::Agent), "agent");
        assert!(selects(&workload(&json!({})), &entry));
        assert!(selects(&workload(&json!({"team": "a"})), &entry));
        assert!(!selects(&workload(&json!({"team": "b"})), &entry));
        let aggregator = json!({"kind": "VectorAggregator", "metadata": {"namespace": "n"}});
        assert_eq!(group(&aggregator, RunnerKind::Aggregator), "aggregator n");
    }
}
