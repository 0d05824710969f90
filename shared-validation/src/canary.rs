//! The object that is refused whatever else it says: whoever sends it learns whether anybody judges.

use serde_json::{Value, json};

use crate::catalogue::RuleInfo;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;
use crate::rule::{Layer, Severity};
use crate::ruleset::Report;
use crate::verdict::Violation;

/// The rule that refuses it. No policy changes what it does.
pub const RULE: &str = "canary";

/// The annotation that makes an object one.
pub const ANNOTATION: &str = "lockstep.dev/canary";

/// The field that a refusal of it names.
#[must_use]
pub fn field() -> String {
    path().to_string()
}

/// Makes a canary of an object that nothing else is wrong with.
pub(crate) fn probe_object(mut object: Value, name: &str, namespace: Option<&str>) -> Value {
    object["metadata"] = json!({"name": name, "annotations": {ANNOTATION: "refused"}});
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
            "The annotation `{ANNOTATION}` is not there: it marks what is sent only to see it refused."
        ),
        reference: "Lockstep's own: how the gate is seen to work before it is relied on".to_owned(),
        fields: vec!["metadata.annotations".to_owned()],
        expression: None,
    }
}

/// Refuses a canary, also one that has come to be stored.
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
