//! Verdict → response: what the API server decodes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use shared_validation::{Verdict, Violation};

use crate::review::{GroupVersionKind, Request};

/// The API server cuts a warning at 256 characters.
const MAX_WARNING_CHARS: usize = 256;

/// A review that answers, of whichever kind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer<R> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) response: R,
}

/// An `AdmissionReview` that answers.
pub(crate) type Review = Answer<Response>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    /// Base64, as Go encodes bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<Value>,
}

impl Response {
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

impl Review {
    fn of(response: Response) -> Self {
        Self {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response,
        }
    }

    /// Nothing to say.
    pub(crate) fn pass(uid: &str) -> Self {
        Self::of(Response::allowed(uid))
    }

    /// Refused, for a reason other than the object's fields.
    pub(crate) fn refuse(uid: &str, code: u16, reason: &str, message: &str) -> Self {
        let status =
            json!({"status": "Failure", "message": message, "reason": reason, "code": code});
        Self::of(Response {
            allowed: false,
            status: Some(status),
            ..Response::allowed(uid)
        })
    }

    /// What the rules say: 422 with one cause for each error, or leave with warnings.
    pub(crate) fn verdict(request: &Request<'_>, verdict: &Verdict) -> Self {
        let all = verdict.errors.iter().chain(&verdict.warnings);
        let fired = rules(all.chain(&verdict.audited));
        let response = Response {
            warnings: verdict.warnings.iter().map(warning).collect(),
            audit_annotations: (!fired.is_empty()).then(|| json!({ "rules": fired })),
            ..Response::allowed(&request.uid)
        };
        if verdict.is_valid() {
            return Self::of(response);
        }
        let status = invalid(&request.kind, &request.name, verdict);
        Self::of(Response {
            allowed: false,
            status: Some(status),
            ..response
        })
    }

    /// The defaults to add.
    pub(crate) fn additions(uid: &str, additions: &json_patch::Patch) -> Self {
        let mut response = Response::allowed(uid);
        if !additions.0.is_empty() {
            let patch = serde_json::to_vec(additions).expect("a JSON Patch is JSON");
            response.patch_type = Some("JSONPatch");
            response.patch = Some(STANDARD.encode(patch));
        }
        Self::of(response)
    }

    pub(crate) fn is_allowed(&self) -> bool {
        self.response.allowed
    }

    /// The rules that it has fired for, as the audit annotation names them.
    pub(crate) fn fired(&self) -> Option<&str> {
        self.response.audit_annotations.as_ref()?["rules"].as_str()
    }
}

/// A `Status` as the API server itself gives for an invalid object.
fn invalid(kind: &GroupVersionKind, name: &str, verdict: &Verdict) -> Value {
    let causes: Vec<_> = verdict
        .errors
        .iter()
        .map(|violation| {
            json!({
                "reason": violation.error.error_type.as_str(),
                "message": violation.error.body(),
                "field": violation.error.path.to_string(),
            })
        })
        .collect();
    json!({
        "status": "Failure",
        "message": format!("{}.{} \"{name}\" is invalid: {}", kind.kind, kind.group, verdict.message()),
        "reason": "Invalid",
        "details": { "name": name, "group": kind.group, "kind": kind.kind, "causes": causes },
        "code": 422,
    })
}

/// The ids of the rules that fired, each once, as one line.
pub(crate) fn rules<'a>(violations: impl Iterator<Item = &'a Violation>) -> String {
    let mut ids: Vec<_> = violations
        .map(|violation| violation.rule.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.join(",")
}

fn warning(violation: &Violation) -> String {
    let text = violation.error.to_string().replace(char::is_control, " ");
    if text.chars().count() <= MAX_WARNING_CHARS {
        return text;
    }
    let mut cut: String = text.chars().take(MAX_WARNING_CHARS - 1).collect();
    cut.push('…');
    cut
}
