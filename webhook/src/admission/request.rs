//! Bytes → `AdmissionReview`: one borrowed parse of the request body.

use lockstep_shared_validation::RawObject;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::admission::error::RequestError;

/// Request of an `AdmissionReview`, reduced to the fields that validation needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionRequest<T> {
    pub(crate) uid: String,
    pub(crate) kind: GroupVersionKind,
    /// Kind of the user's request. Its version may differ from that of `kind`.
    #[serde(rename = "requestKind")]
    written_as: Option<GroupVersionKind>,
    pub(crate) sub_resource: Option<String>,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    pub(crate) operation: String,
    #[serde(default)]
    pub(crate) user_info: UserInfo,
    pub(crate) object: Option<T>,
    pub(crate) old_object: Option<T>,
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Object of an `AdmissionReview`.
#[derive(Debug)]
pub(crate) enum LazyObject<'a> {
    Parsed(RawObject<'a>),
    /// Raw JSON of an object that cannot be parsed. It may never be needed.
    Raw(&'a RawValue),
}

impl<'a> LazyObject<'a> {
    /// Parses the object, unless that has already been done.
    pub(crate) fn parse(self) -> serde_json::Result<RawObject<'a>> {
        match self {
            Self::Parsed(written) => Ok(written),
            Self::Raw(text) => RawObject::parse(text),
        }
    }
}

impl<T> AdmissionRequest<T> {
    /// Converts the objects of the request to another type.
    pub(crate) fn map<U>(self, of: impl Fn(T) -> U) -> AdmissionRequest<U> {
        AdmissionRequest {
            uid: self.uid,
            kind: self.kind,
            written_as: self.written_as,
            sub_resource: self.sub_resource,
            name: self.name,
            namespace: self.namespace,
            operation: self.operation,
            user_info: self.user_info,
            object: self.object.map(&of),
            old_object: self.old_object.map(&of),
            dry_run: self.dry_run,
        }
    }

    /// Returns true if the object has the version of the user's request, so that it was not converted.
    pub(crate) fn is_unconverted(&self) -> bool {
        let written_as = self.written_as.as_ref();
        written_as.is_some_and(|written| *written == self.kind)
    }
}

/// Group, version and kind of the object.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct GroupVersionKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// User who sent the request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct UserInfo {
    #[serde(default)]
    pub(crate) username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<AdmissionRequest<T>>,
}

impl<T> AdmissionReview<T> {
    fn map<U>(self, of: impl Fn(T) -> U) -> AdmissionReview<U> {
        AdmissionReview {
            api_version: self.api_version,
            kind: self.kind,
            request: self.request.map(|request| request.map(of)),
        }
    }
}

/// Parses an `AdmissionReview` of `admission.k8s.io/v1`.
pub(crate) fn parse(body: &[u8]) -> Result<AdmissionRequest<LazyObject<'_>>, RequestError> {
    let to_error = |error: &dyn std::error::Error| {
        RequestError::bad_request(format!("the body is not an AdmissionReview: {error}"))
    };
    // Check the whole body: the parser does not check the strings of fields that it skips.
    let body = std::str::from_utf8(body).map_err(|error| to_error(&error))?;
    let review = match serde_json::from_str::<AdmissionReview<RawObject<'_>>>(body) {
        Ok(review) => review.map(LazyObject::Parsed),
        // An object that cannot be parsed is an error only if the request needs it.
        Err(_) => serde_json::from_str::<AdmissionReview<&RawValue>>(body)
            .map_err(|error| to_error(&error))?
            .map(LazyObject::Raw),
    };
    if (review.api_version.as_str(), review.kind.as_str())
        != ("admission.k8s.io/v1", "AdmissionReview")
    {
        return Err(RequestError::bad_request(format!(
            "expected an AdmissionReview of admission.k8s.io/v1, got `{}` of `{}`; set `admissionReviewVersions: [v1]`",
            review.kind, review.api_version
        )));
    }
    let request = review.request.ok_or_else(|| {
        RequestError::bad_request(
            "the AdmissionReview has no `request`; there is nothing to validate",
        )
    })?;
    if request.uid.is_empty() {
        return Err(RequestError::bad_request(
            "`request.uid` is empty; the response needs it",
        ));
    }
    require_short_uid(&request.uid)?;
    Ok(request)
}

/// Maximum length of the uid of a request, in bytes. An API server sends 36.
const MAX_UID_BYTES: usize = 1 << 10;

/// Rejects a uid that would make every response large.
pub(crate) fn require_short_uid(uid: &str) -> Result<(), RequestError> {
    if uid.len() <= MAX_UID_BYTES {
        return Ok(());
    }
    Err(RequestError::bad_request(format!(
        "`request.uid` has {} bytes; at most {MAX_UID_BYTES} are allowed",
        uid.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_cannot_be_parsed_remains_raw() {
        let body = |operation: &str, value: &str| {
            format!(
                r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
                    "uid": "u", "operation": "{operation}", "oldObject": {{"a": {value}}},
                    "kind": {{"group": "g", "version": "v1", "kind": "K"}}}}}}"#
            )
        };
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for (value, is_read) in [("[[[]]]", true), (&*deep, true), ("1e999", false)] {
            let body = body("DELETE", value);
            let request = parse(body.as_bytes()).expect("a review");
            assert!(request.object.is_none());
            let old = request.old_object.expect("an object");
            assert_eq!(matches!(old, LazyObject::Parsed(_)), is_read, "{value}");
            assert_eq!(old.parse().is_ok(), is_read, "{value}");
        }
    }

    #[test]
    fn a_body_that_is_not_utf8_is_rejected_even_if_only_an_ignored_field_is_not() {
        let body = |note: &[u8]| {
            let after = br#"", "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request":
                {"uid": "u", "operation": "CREATE", "kind": {"group": "g", "version": "v1", "kind": "K"}}}"#;
            [br#"{"note": ""#, note, after].concat()
        };
        assert!(parse(&body(b"plain")).is_ok());
        let error = parse(&body(b"\xbf\x8c")).expect_err("not UTF-8");
        assert!(error.message.contains("utf-8"), "{}", error.message);
    }
}
