//! What is read of pipelines, and of who runs them, as they are stored.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::role::RunnerKind;

/// The annotation of objects that the loop leaves alone.
const PAUSED: &str = "lockstep.dev/paused";

/// What is known of a pipeline as it is.
#[derive(Clone, Copy)]
pub(super) enum ValidationState {
    /// It was judged, and can run; what could not be judged of it was only warned of.
    Valid,
    /// It was judged, and cannot run.
    Invalid,
    /// It was changed since.
    Changed,
    /// It could not be judged.
    Unclear,
}

pub(super) fn validation_state(pipeline: &Value) -> ValidationState {
    let status = &pipeline["status"];
    let (observed, is_valid) = (&status["observedGeneration"], &status["configCheckResult"]);
    // The operator of kaasops does not say what it has judged.
    let is_anothers = observed.is_null() && !is_valid.is_null();
    if !is_anothers && *observed != pipeline["metadata"]["generation"] {
        ValidationState::Changed
    } else if *is_valid == true {
        ValidationState::Valid
    } else if status["LastAppliedPipelineHash"].is_null() {
        ValidationState::Unclear
    } else {
        ValidationState::Invalid
    }
}

pub(super) fn is_paused(pipeline: &Value) -> bool {
    pipeline["metadata"]["annotations"][PAUSED] == "true"
}

pub(super) fn role(pipeline: &Value) -> Option<RunnerKind> {
    RunnerKind::of(pipeline.pointer("/spec/sources")?.as_object()?)
}

/// The role that it had when it was judged.
pub(super) fn former_role(pipeline: &Value) -> Option<RunnerKind> {
    RunnerKind::named(pipeline["status"]["role"].as_str()?)
}

/// What may be run with what, by where it is: all agents' pipelines, and the aggregators' of each namespace and of
/// none.
pub(super) fn together(object: &Value, role: RunnerKind) -> String {
    match role {
        RunnerKind::Agent => "agent".to_owned(),
        RunnerKind::Aggregator => format!("aggregator {}", text(&object["metadata"]["namespace"])),
    }
}

/// Where a pipeline listens or waits to, as its status tells.
pub(super) fn addresses(pipeline: &Value) -> BTreeSet<String> {
    from_status(pipeline, "addresses").collect()
}

/// Who runs a pipeline, as its status tells.
pub(super) fn run_by(pipeline: &Value) -> Vec<String> {
    from_status(pipeline, "runBy").collect()
}

fn from_status(pipeline: &Value, field: &str) -> impl Iterator<Item = String> + use<> {
    let texts = pipeline["status"][field].as_array().into_iter().flatten();
    let texts = texts.filter_map(|text| Some(text.as_str()?.to_owned()));
    texts.collect::<Vec<_>>().into_iter()
}

pub(super) fn is_being_deleted(object: &Value) -> bool {
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
