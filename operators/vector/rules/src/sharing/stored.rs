//! What is read of pipelines, and of who runs them, as they are stored.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::role::Role;

/// Where Vector's own API listens in the Pods that run it, at all of their addresses.
pub(super) const API_PORT: &str = "tcp 8686";

/// What may be run with what, by where it is: all agents' pipelines, and the aggregators' of each namespace and of
/// none.
///
/// None of one that nobody can run.
#[must_use]
pub fn together_with(pipeline: &Value) -> Option<String> {
    Some(match role(pipeline)? {
        Role::Agent => "agent".to_owned(),
        Role::Aggregator => aggregators_in(pipeline),
    })
}

pub(super) fn role(pipeline: &Value) -> Option<Role> {
    Role::of(pipeline.pointer("/spec/sources")?.as_object()?)
}

/// The same, of who runs them.
#[must_use]
pub fn runs_together(runner: &Value) -> String {
    if runner["kind"] == "Vector" {
        "agent".to_owned()
    } else {
        aggregators_in(runner)
    }
}

fn aggregators_in(object: &Value) -> String {
    let namespace = object["metadata"]["namespace"].as_str();
    format!("aggregator {}", namespace.unwrap_or_default())
}

/// What a pipeline listens on, as far as its status tells.
pub(super) fn held(pipeline: &Value) -> BTreeSet<String> {
    let status = &pipeline["status"];
    let told = status["addresses"].as_array().into_iter().flatten();
    let told = told.filter(|_| status["configCheckResult"] == true);
    told.filter_map(Value::as_str).map(String::from).collect()
}

/// Whether it cannot run whatever others do: then it is told to listen nowhere.
pub(super) fn is_faulty(pipeline: &Value) -> bool {
    let status = &pipeline["status"];
    let is_of_now = status["observedGeneration"] == pipeline["metadata"]["generation"];
    is_of_now && status["configCheckResult"] == false && status["addresses"].is_null()
}

pub(super) fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn selector(runner: &Value) -> Option<&Map<String, Value>> {
    runner.pointer("/spec/selector/matchLabels")?.as_object()
}

/// Whether a pipeline has every label that is selected by.
pub(super) fn selects(runner: &Value, pipeline: &Value) -> bool {
    let labels = &pipeline["metadata"]["labels"];
    let mut selected = selector(runner).into_iter().flatten();
    selected.all(|(name, value)| labels.get(name) == Some(value))
}

pub(super) fn has_api(runner: &Value) -> bool {
    let of = |pointer| runner.pointer(pointer) == Some(&Value::Bool(true));
    of("/spec/agent/api/enabled") || of("/spec/api/enabled")
}

/// What an object is called among those of all kinds and namespaces.
pub(super) fn name(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    match text("/metadata/namespace") {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}
