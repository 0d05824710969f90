//! Admission probe: an object that is always denied. A client that sends one learns whether the webhook is
//! called.

use crd_validation::{FieldError, FieldPath};
use serde_json::{Value, json};

use crate::report::Report;
use crate::result::Violation;
use crate::rule::{Layer, Severity};
use crate::rule_info::RuleInfo;

/// Id of the rule that denies admission probes. A policy cannot change its action.
pub const RULE: &str = "admission-probe";

/// Annotation that marks an object as an admission probe.
pub const ANNOTATION: &str = "lockstep.dev/admission-probe";

/// Returns the path of the field in the error of a denied admission probe.
#[must_use]
pub fn field() -> String {
    path().to_string()
}

/// Turns an otherwise valid object into an admission probe.
pub(crate) fn probe_object(mut object: Value, name: &str, namespace: Option<&str>) -> Value {
    object["metadata"] = json!({"name": name, "annotations": {ANNOTATION: "denied"}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

pub(crate) fn rule_info() -> RuleInfo {
    RuleInfo {
        id: RULE.to_owned(),
        layer: Layer::Rust,
        severity: Severity::Error,
        description: format!(
            "The annotation `{ANNOTATION}` must not be set: it marks admission probes, which are always denied."
        ),
        reference: "Lockstep's own: the admission probe verifies the webhook before failurePolicy is set to Fail".to_owned(),
        fields: vec!["metadata.annotations".to_owned()],
        expression: None,
    }
}

/// Adds an error if the object is an admission probe, even if it is already stored.
pub(crate) fn validate(object: &Value, report: &mut Report<'_>) {
    if object["metadata"]["annotations"].get(ANNOTATION).is_none() {
        return;
    }
    let detail = format!("is reserved: remove the annotation [{RULE}]");
    let violation = Violation {
        rule: RULE.to_owned(),
        layer: Layer::Rust,
        at: path(),
        error: FieldError::forbidden(path(), detail),
        inputs: None,
        is_of_related: false,
    };
    report.deny_or_ratchet(violation, false);
}

fn path() -> FieldPath {
    FieldPath::root()
        .child("metadata")
        .child("annotations")
        .key(ANNOTATION)
}
