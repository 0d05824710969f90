//! Comparison of the stored workloads with the namespaces in which they may run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::port_allocation::PIPELINES;
use crate::selection::{self, SelectablePipeline};
use crate::types::workload_role::WorkloadRole;
use crate::workload_namespace::{
    WORKLOAD_NAMESPACES_ARGUMENT, is_marked, mark_command, namespace_of_owned_objects,
};

/// Workloads and pipelines of a cluster, and its marked Namespaces.
pub struct NamespaceAudit {
    workloads: Vec<Value>,
    /// Pipelines by which an aggregator reads the logs of Pods, and so needs a `ClusterRole`.
    log_pipelines: Vec<(Vec<String>, SelectablePipeline)>,
    /// Marked namespaces, or those of the list.
    marked: BTreeSet<String>,
    is_listed: bool,
}

impl NamespaceAudit {
    /// Creates an audit without objects. If namespaces are listed, as by the argument of the controller, no Namespace is needed.
    #[must_use]
    pub fn new(listed: Vec<String>) -> Self {
        Self {
            workloads: Vec::new(),
            log_pipelines: Vec::new(),
            is_listed: !listed.is_empty(),
            marked: listed.into_iter().collect(),
        }
    }

    /// Returns true if the Namespaces have to be added, because none are listed.
    #[must_use]
    pub fn needs_namespaces(&self) -> bool {
        !self.is_listed
    }

    /// Adds a workload or a pipeline; objects of other kinds are ignored.
    pub fn add(&mut self, object: &Value) {
        match object["kind"].as_str().unwrap_or_default() {
            "Vector" | "VectorAggregator" | "ClusterVectorAggregator" => {
                self.workloads.push(object.clone());
            }
            kind if PIPELINES.contains(&kind) => {
                let (keys, pipeline) = selection::index_selectable(object);
                let sources = pipeline.spec["sources"].as_object().into_iter().flatten();
                let mut types = sources.map(|(_, source)| &source["type"]);
                let is_of_aggregators = pipeline.role == Some(WorkloadRole::Aggregator);
                if is_of_aggregators && types.any(|type_| type_ == "kubernetes_logs") {
                    self.log_pipelines.push((keys, pipeline));
                }
            }
            _ => {}
        }
    }

    /// Adds a Namespace. Its mark has no effect if namespaces are listed.
    pub fn add_namespace(&mut self, namespace: &Value) {
        if !self.is_listed && is_marked(namespace) {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            self.marked.insert(name.to_owned());
        }
    }

    /// Returns a sentence for each namespace that is not marked and whose workloads need the mark.
    #[must_use]
    pub fn unmarked(&self) -> Vec<String> {
        let mut workloads: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for workload in self.workloads.iter().filter(|it| self.needs_mark(it)) {
            let namespace = namespace_of_owned_objects(workload).unwrap_or_default();
            if !self.marked.contains(namespace) {
                let name = selection::workload_name(workload);
                let runs = workload["status"]["publishedConfigHash"].is_string();
                let shown = if runs {
                    format!("{name} (runs on)")
                } else {
                    name
                };
                workloads.entry(namespace).or_default().push(shown);
            }
        }
        let sentences = workloads.into_iter().map(|(namespace, names)| {
            format!(
                "{} will not be run or changed before an administrator {}. What runs on keeps its last configuration, Secret values and rights: mark the namespace, or delete what should not run",
                names.join(", "),
                self.remedy(namespace)
            )
        });
        sentences.collect()
    }

    /// Returns what an administrator has to do before workloads run in a namespace.
    fn remedy(&self, namespace: &str) -> String {
        if self.is_listed {
            format!(
                "adds the namespace {namespace} to the argument {WORKLOAD_NAMESPACES_ARGUMENT} of the controller"
            )
        } else {
            format!("marks the namespace: {}", mark_command(namespace))
        }
    }

    /// Returns the marked or listed namespaces, sorted by name.
    pub fn marked(&self) -> impl Iterator<Item = &str> {
        self.marked.iter().map(String::as_str)
    }

    /// Returns true if a workload takes pipelines of other namespaces, or needs a `ClusterRole` for its pipelines.
    fn needs_mark(&self, workload: &Value) -> bool {
        if workload["kind"] != "VectorAggregator" {
            return true;
        }
        let keys = selection::keys(workload, WorkloadRole::Aggregator);
        let mut pipelines = self.log_pipelines.iter();
        pipelines.any(|(of_pipeline, pipeline)| {
            keys.iter().any(|key| of_pipeline.contains(key))
                && selection::selects(workload, pipeline)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workload_namespace::VECTOR_WORKLOADS;

    fn audit(objects: &[Value]) -> NamespaceAudit {
        audit_of(Vec::new(), objects)
    }

    fn audit_of(listed: Vec<String>, objects: &[Value]) -> NamespaceAudit {
        let mut audit = NamespaceAudit::new(listed);
        for object in objects {
            audit.add(object);
        }
        let annotations = json!({VECTOR_WORKLOADS: "allowed"});
        audit.add_namespace(&json!({"metadata": {"name": "marked", "annotations": annotations}}));
        audit.add_namespace(&json!({"metadata": {"name": "plain"}}));
        audit
    }

    fn object(kind: &str, namespace: &str, name: &str) -> Value {
        json!({"kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": {}})
    }

    #[test]
    fn workloads_that_take_pipelines_of_other_namespaces_need_the_mark() {
        let mut clustered = json!({"kind": "ClusterVectorAggregator", "metadata": {"name": "c"}});
        clustered["spec"]["resourceNamespace"] = "plain".into();
        let found = audit(&[
            object("Vector", "marked", "a"),
            object("Vector", "plain", "b"),
            clustered,
            object("VectorAggregator", "plain", "d"),
        ]);
        assert_eq!(
            found.unmarked(),
            [
                "Vector plain/b, ClusterVectorAggregator c will not be run or changed before an administrator marks the namespace: kubectl annotate namespace plain lockstep.dev/vector-workloads=allowed. What runs on keeps its last configuration, Secret values and rights: mark the namespace, or delete what should not run"
            ]
        );
        assert_eq!(found.marked().collect::<Vec<_>>(), ["marked"]);
    }

    #[test]
    fn listed_namespaces_replace_the_marked_ones() {
        let objects = ["marked", "plain"].map(|namespace| object("Vector", namespace, "a"));
        let found = audit_of(vec!["plain".to_owned()], &objects);
        let expected = "Vector marked/a will not be run or changed before an administrator adds the namespace marked to the argument --vector-workload-namespaces of the controller.";
        let unmarked = found.unmarked();
        assert_eq!(unmarked.len(), 1, "{unmarked:?}");
        assert!(unmarked[0].starts_with(expected), "{unmarked:?}");
        assert_eq!(found.marked().collect::<Vec<_>>(), ["plain"]);
        assert!(!found.needs_namespaces());
        assert!(audit(&[]).needs_namespaces());
    }

    #[test]
    fn an_aggregator_needs_the_mark_if_it_reads_the_logs_of_pods() {
        let mut pipeline = object("VectorPipeline", "plain", "p");
        pipeline["spec"]["sources"] = json!({
            "in": {"type": "kubernetes_logs"}, "net": {"type": "vector", "address": "0.0.0.0:6000"},
        });
        let aggregator = object("VectorAggregator", "plain", "a");
        assert_eq!(
            audit(&[pipeline.clone(), aggregator.clone()])
                .unmarked()
                .len(),
            1
        );
        let elsewhere = object("VectorAggregator", "other", "a");
        assert_eq!(audit(&[pipeline.clone(), elsewhere]).unmarked(), [""; 0]);
        let mut selective = aggregator;
        selective["spec"]["selector"]["matchLabels"]["team"] = "x".into();
        assert_eq!(audit(&[pipeline, selective]).unmarked(), [""; 0]);
    }
}
