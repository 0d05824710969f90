//! Bytes → `AdmissionReview`: one borrowed parse of the request body.

use serde::Deserialize;
use serde_json::value::RawValue;
use shared_validation::Written;

use crate::refusal::Refusal;

/// Request of an `AdmissionReview`, reduced to the fields that validation needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<T> {
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
pub(crate) enum Object<'a> {
    Read(Written<'a>),
    /// Raw JSON of an object that cannot be parsed. It may never be needed.
    Unread(&'a RawValue),
}

impl<'a> Object<'a> {
    /// Parses the object, unless that has already been done.
    pub(crate) fn read(self) -> serde_json::Result<Written<'a>> {
        match self {
            Self::Read(written) => Ok(written),
            Self::Unread(text) => Written::read(text),
        }
    }
}

impl<T> Request<T> {
    /// Converts the objects of the request to another type.
    fn with<U>(self, of: impl Fn(T) -> U) -> Request<U> {
        Request {
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
    pub(crate) fn is_as_written(&self) -> bool {
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
struct Review<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request<T>>,
}

impl<T> Review<T> {
    fn with<U>(self, of: impl Fn(T) -> U) -> Review<U> {
        Review {
            api_version: self.api_version,
            kind: self.kind,
            request: self.request.map(|request| request.with(of)),
        }
    }
}

/// Parses an `AdmissionReview` of `admission.k8s.io/v1`.
pub(crate) fn read(body: &[u8]) -> Result<Request<Object<'_>>, Refusal> {
    let refuse = |error: &dyn std::error::Error| {
        Refusal::bad_request(format!("the body is not an AdmissionReview: {error}"))
    };
    // Check the whole body: the parser does not check the strings of fields that it skips.
    let body = std::str::from_utf8(body).map_err(|error| refuse(&error))?;
    let review = match serde_json::from_str::<Review<Written<'_>>>(body) {
        Ok(review) => review.with(Object::Read),
        // An object that cannot be parsed is an error only if the request needs it.
        Err(_) => serde_json::from_str::<Review<&RawValue>>(body)
            .map_err(|error| refuse(&error))?
            .with(Object::Unread),
    };
    if (review.api_version.as_str(), review.kind.as_str())
        != ("admission.k8s.io/v1", "AdmissionReview")
    {
        return Err(Refusal::bad_request(format!(
            "expected an AdmissionReview of admission.k8s.io/v1, got `{}` of `{}`; set `admissionReviewVersions: [v1]`",
            review.kind, review.api_version
        )));
    }
    let request = review.request.ok_or_else(|| {
        Refusal::bad_request("the AdmissionReview has no `request`; there is nothing to validate")
    })?;
    if request.uid.is_empty() {
        return Err(Refusal::bad_request(
            "`request.uid` is empty; the response needs it",
        ));
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_cannot_be_parsed_remains_raw() {
        let body = |operation: &str, depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(
                r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
                    "uid": "u", "operation": "{operation}", "oldObject": {{"a": {open}{close}}},
                    "kind": {{"group": "g", "version": "v1", "kind": "K"}}}}}}"#
            )
        };
        for (depth, is_read) in [(3, true), (200, false)] {
            let body = body("DELETE", depth);
            let request = read(body.as_bytes()).expect("a review");
            assert!(request.object.is_none());
            let old = request.old_object.expect("an object");
            assert_eq!(matches!(old, Object::Read(_)), is_read, "{depth}");
            assert_eq!(old.read().is_ok(), is_read, "{depth}");
        }
    }

    #[test]
    fn a_body_that_is_not_utf8_is_rejected_even_if_only_an_ignored_field_is_not() {
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
