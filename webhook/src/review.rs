//! Bytes → review: one borrowed parse of what the API server sends.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::refusal::Refusal;

/// What an `AdmissionReview` asks, as far as a judgement needs it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<'a> {
    pub(crate) uid: String,
    pub(crate) kind: GroupVersionKind,
    /// What kind the user has written, which may be another version's.
    #[serde(default, rename = "requestKind")]
    written_as: Option<GroupVersionKind>,
    #[serde(default)]
    pub(crate) sub_resource: Option<String>,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) user_info: UserInfo,
    #[serde(borrow, default)]
    pub(crate) object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) old_object: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) dry_run: bool,
}

impl Request<'_> {
    /// Whether the object was written as it is asked about here, and not converted first.
    pub(crate) fn is_as_written(&self) -> bool {
        let written_as = self.written_as.as_ref();
        written_as.is_some_and(|written| *written == self.kind)
    }
}

/// What kind the object is of.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct GroupVersionKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct UserInfo {
    #[serde(default)]
    pub(crate) username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
}

/// Reads an `admission.k8s.io/v1` review.
pub(crate) fn read(body: &[u8]) -> Result<Request<'_>, Refusal> {
    let refuse = |error: &dyn std::error::Error| {
        Refusal::bad_request(format!("the body is not an AdmissionReview: {error}"))
    };
    // All of it: the parser does not look into the texts of fields that it passes over.
    let body = std::str::from_utf8(body).map_err(|error| refuse(&error))?;
    let review: Review<'_> = serde_json::from_str(body).map_err(|error| refuse(&error))?;
    if (review.api_version.as_str(), review.kind.as_str())
        != ("admission.k8s.io/v1", "AdmissionReview")
    {
        return Err(Refusal::bad_request(format!(
            "expected an AdmissionReview of admission.k8s.io/v1, got `{}` of `{}`; set `admissionReviewVersions: [v1]`",
            review.kind, review.api_version
        )));
    }
    let request = review.request.ok_or_else(|| {
        Refusal::bad_request("the AdmissionReview has no `request`: nothing to judge")
    })?;
    if request.uid.is_empty() {
        return Err(Refusal::bad_request(
            "`request.uid` is empty: the answer could not be told apart",
        ));
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_no_text_is_no_review_even_where_nobody_reads_it() {
        let body = |note: &[u8]| {
            let after = br#"", "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request":
                {"uid": "u", "operation": "CREATE", "kind": {"group": "g", "version": "v1", "kind": "K"}}}"#;
            [br#"{"note": ""#, note, after].concat()
        };
        assert!(read(&body(b"plain")).is_ok());
        let refusal = read(&body(b"\xbf\x8c")).expect_err("not UTF-8");
        assert!(refusal.message.contains("utf-8"), "{}", refusal.message);
    }
}
