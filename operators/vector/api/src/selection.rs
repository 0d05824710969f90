//! Selection: the pipelines that a workload runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::port_allocation::labels;
use crate::port_allocation::labels::Labels;
use crate::port_allocation::status_view::{
    ValidationState, former_role, is_being_deleted, name, role, text, together, validation_state,
};
use crate::port_allocation::workload_facts::WorkloadFacts;
use crate::types::pipeline::PipelineWorkload;
use crate::types::workload_role::WorkloadRole;

/// Pipeline, as far as the workloads that may run it depend on it.
#[derive(Clone, Debug)]
pub struct SelectablePipeline {
    /// Namespace; none for a cluster-scoped pipeline.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// `metadata.uid`, which tells it from a deleted one of the same name.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Annotations, without the one with which `kubectl apply` remembers the whole object.
    pub annotations: BTreeMap<String, String>,
    /// Spec.
    pub spec: Value,
    /// Role of the workloads that run it. None if no workload can.
    pub role: Option<WorkloadRole>,
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
            uid,
            generation,
            annotations,
            spec,
            role,
            is_valid,
            workloads: _,
            running_generation: _,
            labels,
        } = self;
        (namespace, name, uid) == (&other.namespace, &other.name, &other.uid)
            && (generation, role, is_valid) == (&other.generation, &other.role, &other.is_valid)
            && (annotations, labels) == (&other.annotations, &other.labels)
            && spec == &other.spec
    }
}

/// Returns the index entry of a pipeline: its keys, and what workloads need of it. The keys are its groups of workloads,
/// each also with each of its labels, and the workloads in its status. A pipeline that is being deleted has none.
#[must_use]
pub fn index_selectable(pipeline: &Value) -> (Vec<String>, SelectablePipeline) {
    let metadata = &pipeline["metadata"];
    let role = role(pipeline);
    let labels = labels::of(pipeline.pointer("/metadata/labels"));
    let workloads: Vec<PipelineWorkload> =
        serde_json::from_value(pipeline["status"]["workloads"].clone()).unwrap_or_default();
    let mut keys = BTreeSet::new();
    if !is_being_deleted(pipeline) {
        // While a change is invalid, the pipeline runs as it last ran, where it last ran.
        let roles = role.into_iter().chain(former_role(pipeline));
        for group in roles.map(|role| together(pipeline, role)) {
            keys.extend(labels.iter().map(|label| labelled(&group, label)));
            keys.insert(group);
        }
        keys.extend(workloads.iter().map(|it| reported(&it.workload)));
    }
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let annotations = annotations
        .filter(|(name, _)| *name != "kubectl.kubernetes.io/last-applied-configuration")
        .map(|(name, value)| (name.clone(), text(value)));
    let entry = SelectablePipeline {
        namespace: metadata["namespace"].as_str().map(str::to_owned),
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        annotations: annotations.collect(),
        spec: pipeline["spec"].clone(),
        role,
        is_valid: matches!(validation_state(pipeline), ValidationState::Valid),
        workloads,
        running_generation: pipeline["status"]["runningGeneration"].as_i64(),
        labels,
    };
    (keys.into_iter().collect(), entry)
}

/// Returns the index keys of the pipelines that concern a workload: those that it may run, as far as one label of its
/// selector tells, and those whose status names it. A pipeline that is under neither key has nothing to do with it, so
/// that a change of it costs the workload nothing.
#[must_use]
pub fn keys(workload: &Value, kind: WorkloadRole) -> Vec<String> {
    let group = together(workload, kind);
    let selector = labels::of(workload.pointer("/spec/selector/matchLabels"));
    // A pipeline without the label is selected, too, if the value is empty.
    let label = selector.iter().find(|label| !label.ends_with('='));
    let selected = label.map_or_else(|| group.clone(), |label| labelled(&group, label));
    vec![selected, reported(&name(workload))]
}

/// Index key of the pipelines of a group that have a label.
fn labelled(group: &str, label: &str) -> String {
    format!("{group} with {label}")
}

/// Index key of the pipelines whose status names a workload.
fn reported(workload: &str) -> String {
    format!("run by {workload}")
}

/// Returns the name of a workload in the status of a pipeline.
#[must_use]
pub fn workload_name(workload: &Value) -> String {
    name(workload)
}

/// Returns true if the selector of a workload selects a pipeline.
#[must_use]
pub fn selects(workload: &Value, pipeline: &SelectablePipeline) -> bool {
    WorkloadFacts::new(workload).runs(&pipeline.labels)
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
            assert_eq!(groups, ["agent", "agent with team=a"]);
            assert_eq!(entry.is_valid, expected, "{status}");
        }
    }

    #[test]
    fn a_pipeline_that_has_changed_its_role_is_still_in_its_former_group() {
        let status =
            json!({"observedGeneration": 2, "configCheckResult": true, "role": "aggregator"});
        let (groups, entry) = index_selectable(&pipeline(&status));
        let groups: Vec<_> = groups.iter().filter(|key| !key.contains('=')).collect();
        assert_eq!(groups, ["agent", "aggregator n"]);
        assert_eq!(entry.role, Some(WorkloadRole::Agent));
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
        assert!(selects(&workload(&json!({})), &entry));
        assert!(selects(&workload(&json!({"team": "a"})), &entry));
        assert!(!selects(&workload(&json!({"team": "b"})), &entry));
    }

    #[test]
    fn a_workload_finds_each_pipeline_that_it_selects_under_its_keys() {
        let values = [None, Some(""), Some("a"), Some("b")];
        let labels = |team: Option<&str>, stage: Option<&str>| {
            let all = [("team", team), ("stage", stage)];
            let set = all.into_iter().filter(|(_, value)| value.is_some());
            set.map(|(name, value)| (name.to_owned(), json!(value)))
                .collect::<serde_json::Map<_, _>>()
        };
        let all = || {
            let pairs = values
                .iter()
                .flat_map(|team| values.map(|stage| (*team, stage)));
            pairs.map(|(team, stage)| labels(team, stage))
        };
        let mut found = 0;
        for (selector, labels) in
            all().flat_map(|selector| all().map(move |it| (selector.clone(), it)))
        {
            let workload = json!({"kind": "Vector", "metadata": {"name": "v", "namespace": "n"},
                "spec": {"selector": {"matchLabels": selector}}});
            let mut pipeline = pipeline(&Value::Null);
            pipeline["metadata"]["labels"] = labels.clone().into();
            let (indexed, entry) = index_selectable(&pipeline);
            let keys = keys(&workload, WorkloadRole::Agent);
            let is_found = keys.iter().any(|key| indexed.contains(key));
            if selects(&workload, &entry) {
                assert!(is_found, "{selector:?} {labels:?}");
            }
            found += usize::from(is_found);
        }
        // Of 256 combinations, the selector of 48 finds none, because a label has another value.
        assert!(found < 200, "{found}");
    }

    #[test]
    fn a_workload_finds_a_pipeline_whose_status_names_it_whatever_its_labels_are() {
        let workload = json!({"kind": "Vector", "metadata": {"name": "v", "namespace": "n"},
            "spec": {"selector": {"matchLabels": {"team": "b"}}}});
        let keys = keys(&workload, WorkloadRole::Agent);
        let finds = |status: &Value| {
            let indexed = index_selectable(&pipeline(status)).0;
            keys.iter().any(|key| indexed.contains(key))
        };
        assert!(!finds(&Value::Null));
        assert!(finds(&json!({"workloads": [{"workload": "Vector n/v"}]})));
        assert!(!finds(
            &json!({"workloads": [{"workload": "Vector n/other"}]})
        ));
    }

    #[test]
    fn aggregators_have_a_group_for_each_namespace() {
        let aggregator =
            json!({"kind": "VectorAggregator", "metadata": {"name": "v", "namespace": "n"}});
        assert_eq!(
            keys(&aggregator, WorkloadRole::Aggregator),
            ["aggregator n", "run by VectorAggregator n/v"]
        );
    }
}
