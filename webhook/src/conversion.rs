//! Conversion webhook: objects of one API version → the same objects in another version.

use kube_core::Status;
use lockstep_shared_validation::ValidatorRegistry;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::admission::error::{RequestError, shortened};
use crate::admission::request::require_short_uid;
use crate::body::parsed_size_estimate;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// `ConversionReview` with a request. It tolerates missing fields, as Go does, so that an error can name the cause.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionReviewRequest<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default, borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    /// Objects as text: they are parsed one at a time, so that memory does not depend on their number.
    #[serde(default, borrow)]
    objects: Vec<&'a RawValue>,
}

/// `ConversionReview` with a response. The objects in it are text already.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionReview {
    api_version: &'static str,
    kind: &'static str,
    response: ConversionResponse,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConversionResponse {
    uid: String,
    result: Status,
    converted_objects: Vec<Box<RawValue>>,
}

/// Number of copies of all objects as text: converted, and in the response, with room for what a conversion adds.
const TEXT_COPIES: usize = 3;

/// Memory estimate for the conversion of all objects of a review.
pub(crate) fn size_estimate(body: &[u8]) -> usize {
    let Ok(ConversionReviewRequest {
        request: Some(request),
        ..
    }) = serde_json::from_slice(body)
    else {
        // It is not going to be converted.
        return 0;
    };
    let objects = request.objects.iter();
    let largest = objects.map(|object| parsed_size_estimate(object.get().as_bytes()));
    largest.max().unwrap_or_default() + TEXT_COPIES * body.len()
}

/// Converts all objects of a review, or none if one of them cannot be converted.
pub(crate) fn convert(
    body: &[u8],
    validators: &ValidatorRegistry,
) -> Result<ConversionReview, RequestError> {
    let review: ConversionReviewRequest<'_> = serde_json::from_slice(body).map_err(|error| {
        RequestError::bad_request(format!("the body is not a ConversionReview: {error}"))
    })?;
    if (review.api_version.as_str(), review.kind.as_str()) != (API_VERSION, KIND) {
        return Err(RequestError::bad_request(format!(
            "expected a {KIND} of {API_VERSION}, got `{}` of `{}`; set `conversionReviewVersions: [v1]`",
            review.kind, review.api_version
        )));
    }
    let request = review.request.ok_or_else(|| {
        RequestError::bad_request(
            "the ConversionReview has no `request`; there is nothing to convert",
        )
    })?;
    require_short_uid(&request.uid)?;
    let to = request.desired_api_version.as_str();
    let converted = request.objects.iter().enumerate().map(|(index, object)| {
        convert_text(object, to, validators)
            .map_err(|problem| format!("objects[{index}]: {}", shortened(&problem)))
    });
    let (converted_objects, result) = match converted.collect::<Result<Vec<_>, _>>() {
        Ok(objects) => (objects, Status::success()),
        Err(message) => (Vec::new(), Status::failure(&message, "")),
    };
    Ok(ConversionReview {
        api_version: API_VERSION,
        kind: KIND,
        response: ConversionResponse {
            uid: request.uid,
            result,
            converted_objects,
        },
    })
}

fn convert_text(
    object: &RawValue,
    to: &str,
    validators: &ValidatorRegistry,
) -> Result<Box<RawValue>, String> {
    let object: Value = serde_json::from_str(object.get()).map_err(|error| error.to_string())?;
    let converted = convert_object(&object, to, validators)?;
    to_raw_value(&converted).map_err(|error| error.to_string())
}

fn convert_object(
    object: &Value,
    to: &str,
    validators: &ValidatorRegistry,
) -> Result<Value, String> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    let ruleset = validators
        .get(group, kind)
        .ok_or_else(|| format!("no ruleset is registered for kind `{kind}` of `{api_version}`"))?;
    ruleset
        .convert(object, to)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(review: &Value) -> String {
        let result = convert(review.to_string().as_bytes(), &ValidatorRegistry::default());
        result.map_or_else(
            |error| error.message,
            |converted| converted.response.result.message,
        )
    }

    #[test]
    fn a_failed_conversion_names_its_cause() {
        let first = message(&json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": KIND}));
        assert!(
            first.contains("set `conversionReviewVersions: [v1]`"),
            "{first}"
        );
        let mut review = json!({"apiVersion": API_VERSION, "kind": KIND});
        let second = message(&review);
        assert!(second.contains("nothing to convert"), "{second}");
        review["request"] = json!({
            "uid": "u",
            "desiredAPIVersion": "example.com/v2",
            "objects": [{"apiVersion": "example.com/v1", "kind": "Trap"}],
        });
        let third = message(&review);
        assert!(
            third.contains(
                "objects[0]: no ruleset is registered for kind `Trap` of `example.com/v1`"
            ),
            "{third}"
        );
    }
}
