//! Name conflicts: components of different pipelines to which the kaasops operator would give the same name, so that
//! one replaces the other in the Vector configuration.

use std::collections::HashMap;

use lockstep_vector_config::{Component, components};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::component_namespace::ComponentNamespace;
use crate::port_allocation::status_view::{is_being_deleted, name, role, text, together};
use crate::types::workload_role::WorkloadRole;

/// Owner of each component name.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, Owner>);

/// Oldest pipeline with a component of this name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    created: String,
    uid: String,
    pipeline: String,
}

/// Component with the same name as a component of another pipeline, as input of the rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NameCollision {
    /// Field that contains the component.
    pub(crate) at: String,
    pub(crate) id: String,
    pub(crate) called: String,
    /// Pipeline that owns the name.
    pub(crate) by: String,
}

impl Names {
    /// Adds the component names of a pipeline.
    pub(crate) fn see(&mut self, pipeline: &Value) {
        if is_being_deleted(pipeline) {
            return;
        }
        let owner = Owner::of(pipeline);
        for (key, ..) in called(pipeline) {
            let oldest = self.0.entry(key).or_insert_with(|| owner.clone());
            if owner < *oldest {
                *oldest = owner.clone();
            }
        }
    }

    /// Returns the components of a pipeline whose names an older pipeline owns.
    pub(crate) fn collisions(&self, pipeline: &Value) -> Vec<NameCollision> {
        let me = Owner::of(pipeline);
        let alike = called(pipeline).filter_map(|(key, called, component)| {
            let owner = self.0.get(&key).filter(|owner| **owner < me)?;
            Some(NameCollision {
                at: format!("spec.{}", component.path()),
                id: component.id.to_owned(),
                called,
                by: owner.pipeline.clone(),
            })
        });
        alike.collect()
    }
}

impl Owner {
    fn of(pipeline: &Value) -> Self {
        let metadata = &pipeline["metadata"];
        Self {
            created: text(&metadata["creationTimestamp"]),
            uid: text(&metadata["uid"]),
            pipeline: name(pipeline),
        }
    }
}

/// Returns every component of a pipeline, with its index key and the name that the kaasops operator gives it.
fn called(pipeline: &Value) -> impl Iterator<Item = (String, String, Component<'_>)> {
    let metadata = &pipeline["metadata"];
    let has_prefix = pipeline["spec"]["skipPrefix"] != true;
    let prefix =
        || ComponentNamespace::of_kaasops(metadata["namespace"].as_str(), &text(&metadata["name"]));
    let prefix = has_prefix.then(prefix);
    // In the kaasops operator, aggregators run the pipelines that have neither role.
    let role = role(pipeline).unwrap_or(WorkloadRole::Aggregator);
    let together = together(pipeline, role);
    let spec = pipeline["spec"].as_object().into_iter();
    spec.flat_map(components).map(move |component| {
        let id = component.id;
        let called = prefix
            .as_ref()
            .map_or_else(|| id.to_owned(), |prefix| prefix.prepend_to(id));
        (format!("{together} {called}"), called, component)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a pipeline of agents with two components; the name of the second is derived from that of the first.
    fn named(namespace: Option<&str>, pipeline: &str, component: &str, created: u8) -> Value {
        let kind = if namespace.is_some() {
            "VectorPipeline"
        } else {
            "ClusterVectorPipeline"
        };
        json!({
            "kind": kind,
            "metadata": {
                "name": pipeline, "namespace": namespace, "uid": format!("{namespace:?} {pipeline}"),
                "creationTimestamp": format!("2026-01-01T00:00:0{created}Z"),
            },
            "spec": {
                "sources": {component: {"type": "kubernetes_logs"}},
                "sinks": {format!("{component}-out"): {"type": "blackhole", "inputs": [component]}},
            },
        })
    }

    /// Returns the pipeline that owns the name of a component of the first pipeline, if it is another one.
    fn other(pipelines: [&Value; 2]) -> Option<String> {
        let mut names = Names::default();
        for pipeline in pipelines {
            names.see(pipeline);
        }
        let namesakes = names.collisions(pipelines[0]);
        let first = namesakes.first()?;
        Some(first.by.clone())
    }

    #[test]
    fn equal_names_from_different_parts_are_found() {
        let old = named(Some("a-b"), "c", "in", 1);
        let collides = |new: &Value| {
            let by = other([new, &old]);
            assert_eq!(other([&old, new]), None, "{new}");
            assert!(by.as_deref().is_none_or(|by| by == "VectorPipeline a-b/c"));
            by.is_some()
        };
        for (namespace, pipeline, component, is_alike) in [
            (Some("a"), "b-c", "in", true),
            (Some("a"), "b", "c-in", true),
            (Some("a-b"), "c-in", "out", true),
            (None, "a-b-c", "in", true),
            (None, "a", "b-c-in", true),
            (Some("a"), "b-c", "in2", false),
            (Some("a"), "bc", "in", false),
            (Some("a-b-c"), "in", "x", false),
            (None, "a-b", "in", false),
        ] {
            let new = named(namespace, pipeline, component, 2);
            assert_eq!(
                collides(&new),
                is_alike,
                "{namespace:?} {pipeline} {component}"
            );
        }
        let mut bare = named(None, "any", "a-b-c-in", 2);
        assert!(!collides(&bare));
        bare["spec"]["skipPrefix"] = true.into();
        assert!(collides(&bare));
        // Agents and aggregators share no process; a pipeline with both kinds of sources belongs to aggregators.
        let mut elsewhere = named(Some("a"), "b-c", "in", 2);
        elsewhere["spec"]["sources"]["in"]["type"] = "kafka".into();
        assert!(!collides(&elsewhere));
        let mut mixed = named(None, "a-b-c", "in", 2);
        mixed["spec"]["sources"]["other"] = json!({"type": "kafka"});
        assert!(!collides(&mixed));
        let mut older = named(None, "a-b", "c-in", 1);
        older["spec"]["sources"]["another"] = json!({"type": "kafka"});
        let by = other([&mixed, &older]);
        assert_eq!(by.as_deref(), Some("ClusterVectorPipeline a-b"));
        let mut going = old.clone();
        going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
        assert_eq!(other([&named(Some("a"), "b-c", "in", 2), &going]), None);
    }

    #[test]
    fn components_of_all_kinds_share_one_set_of_names() {
        let mut old = named(Some("a-b"), "c", "first", 1);
        old["spec"]["transforms"] = json!({"in": {}, "in-out": {}});
        let new = named(Some("a"), "b-c", "in", 2);
        let mut names = Names::default();
        names.see(&old);
        let found = names.collisions(&new);
        let found: Vec<_> = found
            .iter()
            .map(|it| (&*it.at, &*it.id, &*it.called))
            .collect();
        let expected = [
            ("spec.sources[in]", "in", "a-b-c-in"),
            ("spec.sinks[in-out]", "in-out", "a-b-c-in-out"),
        ];
        assert_eq!(found, expected);
    }
}
