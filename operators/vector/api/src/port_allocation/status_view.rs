//! Accessors for stored pipelines and workloads.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::types::workload_role::WorkloadRole;

/// Annotation that pauses the reconciliation of an object.
const PAUSED: &str = "lockstep.dev/paused";

/// Validation state of a pipeline.
#[derive(Clone, Copy)]
pub(crate) enum ValidationState {
    /// The pipeline was validated and can run. If a part could not be validated, this was only a warning.
    Valid,
    /// The pipeline was validated and cannot run.
    Invalid,
    /// The pipeline was changed after its last validation.
    Changed,
    /// The pipeline could not be validated.
    Unclear,
}

pub(crate) fn validation_state(pipeline: &Value) -> ValidationState {
    let status = &pipeline["status"];
    let (observed, is_valid) = (&status["observedGeneration"], &status["configCheckResult"]);
    // The kaasops operator does not report the generation that it has validated.
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

pub(crate) fn is_paused(pipeline: &Value) -> bool {
    pipeline["metadata"]["annotations"][PAUSED] == "true"
}

pub(crate) fn role(pipeline: &Value) -> Option<WorkloadRole> {
    WorkloadRole::of(pipeline.pointer("/spec/sources")?.as_object()?)
}

/// Returns the role of a pipeline at its last validation.
pub(crate) fn former_role(pipeline: &Value) -> Option<WorkloadRole> {
    WorkloadRole::named(pipeline["status"]["role"].as_str()?)
}

/// Returns the group of objects that can share a process: all pipelines of agents form one group; those of aggregators
/// form one group for each namespace, and one for cluster-scoped objects.
pub(crate) fn together(object: &Value, role: WorkloadRole) -> String {
    match role {
        WorkloadRole::Agent => "agent".to_owned(),
        WorkloadRole::Aggregator => {
            format!("aggregator {}", text(&object["metadata"]["namespace"]))
        }
    }
}

/// Returns the addresses that a pipeline listens on or waits for, from its status.
pub(crate) fn addresses(pipeline: &Value) -> BTreeSet<String> {
    from_status(pipeline, "addresses").collect()
}

/// Returns the workloads of a pipeline from its status.
pub(crate) fn run_by(pipeline: &Value) -> Vec<String> {
    from_status(pipeline, "runBy").collect()
}

fn from_status(pipeline: &Value, field: &str) -> impl Iterator<Item = String> + use<> {
    let texts = pipeline["status"][field].as_array().into_iter().flatten();
    let texts = texts.filter_map(|text| Some(text.as_str()?.to_owned()));
    texts.collect::<Vec<_>>().into_iter()
}

pub(crate) fn is_being_deleted(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Returns the kind, namespace and name of an object.
pub(crate) fn name(object: &Value) -> String {
    let (kind, metadata) = (text(&object["kind"]), &object["metadata"]);
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{}", text(&metadata["name"])),
        None => format!("{kind} {}", text(&metadata["name"])),
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
