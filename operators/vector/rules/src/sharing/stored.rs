//! What is read of pipelines, and of who runs them, as they are stored.

use serde_json::Value;

use crate::role::Role;

pub(super) fn role(pipeline: &Value) -> Option<Role> {
    Role::of(pipeline.pointer("/spec/sources")?.as_object()?)
}

/// What may be run with what, by where it is: all agents' pipelines, and the aggregators' of each namespace and of
/// none.
pub(super) fn together(object: &Value, role: Role) -> String {
    match role {
        Role::Agent => "agent".to_owned(),
        Role::Aggregator => format!("aggregator {}", text(&object["metadata"]["namespace"])),
    }
}

/// Whether the status tells of an address.
pub(super) fn is_told(pipeline: &Value, address: &str) -> bool {
    let told = pipeline.pointer("/status/addresses");
    let told = told.and_then(Value::as_array);
    told.is_some_and(|told| told.iter().any(|it| it == address))
}

/// Who runs a pipeline, as its status tells.
pub(super) fn run_by(pipeline: &Value) -> Vec<String> {
    let told = pipeline.pointer("/status/runBy").and_then(Value::as_array);
    let told = told.into_iter().flatten().filter_map(Value::as_str);
    told.map(String::from).collect()
}

/// Whether it was judged as it is, and cannot run.
pub(super) fn is_invalid(pipeline: &Value) -> bool {
    let status = &pipeline["status"];
    status["observedGeneration"] == pipeline["metadata"]["generation"]
        && status["configCheckResult"] == false
}

pub(super) fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// What an object is called among those of all kinds and namespaces.
pub(super) fn name(object: &Value) -> String {
    let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{}", text(&metadata["name"])),
        None => format!("{kind} {}", text(&metadata["name"])),
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
