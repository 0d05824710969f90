//! Selection: the pipelines that a workload runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::port_allocation::labels;
use crate::port_allocation::labels::Labels;
use crate::port_allocation::runner::Runner;
use crate::port_allocation::status_view::{
    ValidationState, former_role, is_being_deleted, name, role, text, together, validation_state,
};
use crate::types::pipeline::PipelineWorkload;
use crate::types::runner_kind::RunnerKind;

/// Pipeline, as far as the workloads that may run it depend on it.
#[derive(Clone, Debug)]
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
    /// Generations that workloads run of it, from its status.
    pub workloads: Vec<PipelineWorkload>,
    /// Generation that all of them run, from its status.
    pub running_generation: Option<i64>,
    labels: Labels,
}

/// Workloads write what they run to the status. This is no change that they have to react to.
impl PartialEq for SelectablePipeline {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            namespace,
            name,
            generation,
            annotations,
            spec,
            role,
            is_valid,
            workloads: _,
            running_generation: _,
            labels,
        } = self;
        (namespace, name) == (&other.namespace, &other.name)
            && (generation, role, is_valid) == (&other.generation, &other.role, &other.is_valid)
            && (annotations, labels) == (&other.annotations, &other.labels)
            && spec == &other.spec
    }
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
        workloads: serde_json::from_value(pipeline["status"]["workloads"].clone())
            .unwrap_or_default(),
        running_generation: pipeline["status"]["runningGeneration"].as_i64(),
        labels: labels::of(pipeline.pointer("/metadata/labels")),
    };
    (groups.into_iter().collect(), entry)
}

/// Returns the group of a workload: the index key of the pipelines that it may run.
#[must_use]
pub fn group(workload: &Value, kind: RunnerKind) -> String {
    together(workload, kind)
}

/// Returns the name of a workload in the status of a pipeline.
#[must_use]
pub fn workload_name(workload: &Value) -> String {
    name(workload)
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
    fn a_report_of_a_workload_is_no_change() {
        let status = json!({"observedGeneration": 3, "configCheckResult": true});
        let (_, before) = index_selectable(&pipeline(&status));
        let mut reported = status.clone();
        reported["workloads"] = json!([{"workload": "Vector n/v", "generation": 3}]);
        reported["runningGeneration"] = json!(3);
        let (_, after) = index_selectable(&pipeline(&reported));
        assert_eq!(before, after);
        assert_eq!(
            (after.workloads.len(), after.running_generation),
            (1, Some(3))
        );
        reported["configCheckResult"] = json!(false);
        assert_ne!(before, index_selectable(&pipeline(&reported)).1);
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
