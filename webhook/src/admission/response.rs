//! Validation result → response: the `AdmissionReview` that the API server decodes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_core::Status;
use kube_core::response::{StatusCause, StatusDetails, reason};
use lockstep_shared_validation::{
    AND_MORE, ErrorType, FieldPath, RatchetedViolations, ValidationResult, Violation,
};
use serde::Serialize;
use serde_json::Value;

use crate::admission::bounded_response;
use crate::admission::bounded_response::Room;
use crate::admission::request::{AdmissionRequest, GroupVersionKind};

/// Length at which the API server truncates a warning.
const MAX_WARNING_CHARS: usize = 256;

/// Outcome of an admission request.
pub(crate) enum Outcome {
    /// No ruleset is registered for the kind.
    UnknownKind,
    /// The request is allowed, and nothing is reported.
    Allowed,
    /// Defaults that the object lacks.
    Defaulted(json_patch::Patch),
    /// Result of the complete validation.
    Validated(ValidationResult),
}

impl Outcome {
    /// Returns true if the object is validated, and the rules accept it.
    pub(crate) fn is_accepted(&self) -> bool {
        match self {
            Self::Allowed => true,
            Self::Validated(result) => result.is_valid(),
            Self::UnknownKind | Self::Defaulted(_) => false,
        }
    }

    /// Returns the result of the validation. It is empty if nothing is reported.
    pub(crate) fn into_result(self) -> ValidationResult {
        match self {
            Self::Validated(result) => result,
            Self::Allowed | Self::UnknownKind | Self::Defaulted(_) => ValidationResult {
                object: Value::Null,
                defaults: json_patch::Patch::default(),
                errors: Vec::new(),
                has_more_errors: false,
                has_internal_errors: false,
                warnings: Vec::new(),
                has_more_warnings: false,
                audit_violations: Vec::new(),
                has_more_audit_violations: false,
                ratcheted: RatchetedViolations::default(),
            },
        }
    }
}

/// `AdmissionReview` with a response.
///
/// The types of `kube_core::admission` are not used for it: they need several strings more for an allowed review, and
/// encode the patch as a list of numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionReview {
    api_version: &'static str,
    kind: &'static str,
    response: AdmissionResponse,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionResponse {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    /// JSON Patch in Base64, as Go encodes bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<AuditAnnotations>,
}

#[derive(Serialize)]
struct AuditAnnotations {
    rules: String,
}

impl AdmissionResponse {
    fn allowed(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            allowed: true,
            status: None,
            patch_type: None,
            patch: None,
            warnings: Vec::new(),
            audit_annotations: None,
        }
    }
}

impl AdmissionReview {
    fn new(response: AdmissionResponse) -> Self {
        Self {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response,
        }
    }

    /// Returns the response for an outcome.
    pub(crate) fn from_outcome<T>(request: &AdmissionRequest<T>, outcome: &Outcome) -> Self {
        match outcome {
            Outcome::UnknownKind => Self::unknown_kind(request),
            Outcome::Allowed => Self::new(AdmissionResponse::allowed(&request.uid)),
            Outcome::Defaulted(additions) => Self::patch(&request.uid, additions),
            Outcome::Validated(result) => Self::from_result(request, result),
        }
    }

    /// Denies a request of a kind that no ruleset is registered for.
    fn unknown_kind<T>(request: &AdmissionRequest<T>) -> Self {
        let kind = &request.kind;
        let message = format!(
            "no ruleset is registered for {}/{} {}; the webhook configuration must match registered kinds only",
            truncate(&kind.group),
            truncate(&kind.version),
            truncate(&kind.kind)
        );
        let status = Status::failure(&message, reason::BAD_REQUEST).with_code(400);
        Self::new(AdmissionResponse {
            allowed: false,
            status: Some(status),
            ..AdmissionResponse::allowed(&request.uid)
        })
    }

    /// Returns the response for a validation result: denied with code 422 and one cause for each error, or
    /// allowed with warnings.
    fn from_result<T>(request: &AdmissionRequest<T>, result: &ValidationResult) -> Self {
        let all = result.errors.iter().chain(&result.warnings);
        let fired = rules(all.chain(&result.audit_violations));
        let response = AdmissionResponse {
            warnings: warnings(result),
            audit_annotations: (!fired.is_empty()).then_some(AuditAnnotations { rules: fired }),
            ..AdmissionResponse::allowed(&request.uid)
        };
        if result.is_valid() {
            return Self::new(response);
        }
        let status = invalid(&request.kind, &request.name, result);
        Self::new(AdmissionResponse {
            allowed: false,
            status: Some(status),
            ..response
        })
    }

    /// Returns the response with the defaults to add, as a JSON Patch.
    fn patch(uid: &str, additions: &json_patch::Patch) -> Self {
        let mut response = AdmissionResponse::allowed(uid);
        if !additions.0.is_empty() {
            let patch = serde_json::to_vec(additions).expect("a JSON Patch is JSON");
            response.patch_type = Some("JSONPatch");
            response.patch = Some(STANDARD.encode(patch));
        }
        Self::new(response)
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.response.allowed
    }

    /// Returns the ids of the rules that fired, as in the audit annotation.
    pub(crate) fn fired_rules(&self) -> Option<&str> {
        let annotations = self.response.audit_annotations.as_ref()?;
        Some(&annotations.rules)
    }
}

/// Returns the `Status` that the API server itself returns for an invalid object.
fn invalid(kind: &GroupVersionKind, name: &str, result: &ValidationResult) -> Status {
    let GroupVersionKind { group, kind, .. } = kind;
    let name = truncate(name);
    let message = format!("{kind}.{group} \"{name}\" is invalid: {}", result.message());
    let message = bounded_response::shortened(&message, bounded_response::MESSAGE_BYTES);
    Status::failure(&message, reason::INVALID)
        .with_code(422)
        .with_details(StatusDetails {
            name: name.to_owned(),
            group: group.clone(),
            kind: kind.clone(),
            uid: String::new(),
            causes: causes(result),
            retry_after_seconds: 0,
        })
}

/// Returns one cause for each error, and one more if there are errors that are not shown.
fn causes(result: &ValidationResult) -> Vec<StatusCause> {
    let mut room = Room::new(bounded_response::CAUSES_BYTES);
    let mut causes = Vec::with_capacity(result.errors.len());
    let mut has_more = result.has_more_errors;
    for violation in &result.errors {
        let cause = StatusCause {
            reason: violation.error.error_type.as_str().to_owned(),
            message: violation.error.body(),
            field: violation.error.path.to_string(),
        };
        if room.take(&[&cause.message, &cause.field]) {
            causes.push(cause);
        } else {
            has_more = true;
        }
    }
    if has_more {
        causes.push(StatusCause {
            reason: ErrorType::Invalid.as_str().to_owned(),
            message: AND_MORE.to_owned(),
            field: FieldPath::root().to_string(),
        });
    }
    causes
}

/// Returns the warnings, and one more if there are some that are not shown.
fn warnings(result: &ValidationResult) -> Vec<String> {
    let mut room = Room::new(bounded_response::WARNINGS_BYTES);
    let mut warnings = Vec::new();
    let mut has_more = result.has_more_warnings;
    for violation in &result.warnings {
        let text = warning(violation);
        if room.take(&[&text]) {
            warnings.push(text);
        } else {
            has_more = true;
        }
    }
    if has_more {
        warnings.push(AND_MORE.to_owned());
    }
    warnings
}

/// Returns the ids of the rules that fired, each once, separated by commas.
pub(crate) fn rules<'a>(violations: impl Iterator<Item = &'a Violation>) -> String {
    let mut ids: Vec<_> = violations
        .map(|violation| violation.rule.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    bounded_response::shortened(&ids.join(","), bounded_response::ANNOTATION_BYTES)
}

/// Maximum length of an object name in Kubernetes.
const MAX_NAME_BYTES: usize = 253;

/// Truncates a text to the maximum length of a name.
pub(crate) fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME_BYTES)]
}

/// Returns the text of a warning. A long one is shortened in front of the id of its rule.
fn warning(violation: &Violation) -> String {
    let text = violation.error.to_string().replace(char::is_control, " ");
    let length = text.chars().count();
    if length <= MAX_WARNING_CHARS {
        return text;
    }
    let ending = format!(" [{}]", violation.rule);
    let ending = if text.ends_with(&ending) { &ending } else { "" };
    let kept = MAX_WARNING_CHARS - 1 - ending.chars().count().min(MAX_WARNING_CHARS - 1);
    let beginning: String = text.chars().take(kept).collect();
    format!("{beginning}…{ending}")
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::{
        CrdValidator, FieldError, FieldPath, Layer, ValidationRequest, Validator,
    };
    use serde_json::json;

    use super::*;
    use crate::admission::request;

    #[test]
    fn a_long_warning_keeps_the_id_of_its_rule() {
        let path = FieldPath::new("spec.image");
        let violation = |detail: &str| Violation {
            rule: "release".to_owned(),
            layer: Layer::Rust,
            at: path.clone(),
            error: FieldError::invalid_hidden(path.clone(), format!("{detail} [release]")),
            inputs: None,
            is_of_related: false,
        };
        let short = warning(&violation("old"));
        assert_eq!(short, "spec.image: Invalid value: old [release]");
        let long = warning(&violation(&"ä".repeat(300)));
        assert_eq!(long.chars().count(), MAX_WARNING_CHARS);
        assert!(long.ends_with("ä… [release]"), "{long}");
    }

    #[test]
    fn the_message_of_a_denial_names_every_cause_as_lockstep_check_does() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer", "maximum": 3},
        }});
        let crd = json!({"spec": {
            "group": "example.com",
            "names": {"kind": "Trap", "plural": "traps"},
            "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
        }});
        let kind = CrdValidator::compile(&crd, "v1").expect("it compiles");
        let result = kind.validate(&ValidationRequest::create(&json!({"a": "x", "b": 7})));
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": "CREATE", "name": "one",
            "kind": {"group": "example.com", "version": "v1", "kind": "Trap"},
        }});
        let body = body.to_string();
        let request = request::parse(body.as_bytes()).expect("a review");
        let status = AdmissionReview::from_result(&request, &result)
            .response
            .status;
        let status = status.expect("a denial");
        let expected = format!("Trap.example.com \"one\" is invalid: {}", result.message());
        assert_eq!(status.message, expected);
        assert_eq!(status.details.map(|details| details.causes.len()), Some(2));
    }
}
