//! Conversion webhook: objects of one API version → the same objects in another version.

mod deep_parts;

use std::fmt;

use kube_core::Status;
use lockstep_shared_validation::{ValidatorRegistry, shortened};
use serde::de::{Deserializer as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use crate::admission::error::{MAX_MESSAGE_BYTES, RequestError};
use crate::admission::request::require_short_uid;
use crate::body::parsed_size_estimate;
use crate::conversion::deep_parts::DeepParts;

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
    /// List of objects as text: they are read one at a time, so that memory does not depend on their number.
    #[serde(default, borrow)]
    objects: Option<&'a RawValue>,
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
    converted_objects: Box<RawValue>,
}

/// Number of copies of all objects as text: converted, and in the response, with room for what a conversion adds.
pub(crate) const TEXT_COPIES: usize = 3;

/// Memory estimate for the texts of a conversion. It does not read the body. [`convert`] estimates the memory for the
/// largest object.
pub(crate) fn size_estimate(body: &[u8]) -> usize {
    TEXT_COPIES * body.len()
}

/// Converts all objects of a review, or none if one of them cannot be converted. `reserve` reserves the memory for the
/// parsed form of the largest object.
pub(crate) fn convert<R>(
    body: &[u8],
    validators: &ValidatorRegistry,
    reserve: impl FnOnce(usize) -> Result<R, RequestError>,
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
    let objects = request.objects.map_or("[]", RawValue::get);
    let _reserved = reserve(largest_estimate(objects)?)?;
    let to = request.desired_api_version.as_str();
    let (converted_objects, result) = match convert_all(objects, to, validators)? {
        Ok(converted) => (converted, Status::success()),
        Err(message) => ("[]".to_owned(), Status::failure(&message, "")),
    };
    let converted_objects = RawValue::from_string(converted_objects)
        .map_err(|error| RequestError::bad_request(format!("cannot convert: {error}")))?;
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

/// Returns the memory estimate for the parsed form of the largest object in a list.
fn largest_estimate(objects: &str) -> Result<usize, RequestError> {
    let mut largest = 0;
    let _: Option<()> = each_object(objects, |_, object| {
        largest = largest.max(parsed_size_estimate(object.as_bytes()));
        None
    })?;
    Ok(largest)
}

/// Converts the objects of a list, and returns a list, or the reason why one of them cannot be converted.
fn convert_all(
    objects: &str,
    to: &str,
    validators: &ValidatorRegistry,
) -> Result<Result<String, String>, RequestError> {
    let mut converted = vec![b'['];
    let problem = each_object(objects, |index, object| {
        if index > 0 {
            converted.push(b',');
        }
        convert_text(object, to, validators, &mut converted)
            .err()
            .map(|problem| {
                format!(
                    "objects[{index}]: {}",
                    shortened(&problem, MAX_MESSAGE_BYTES)
                )
            })
    })?;
    converted.push(b']');
    Ok(match problem {
        Some(problem) => Err(problem),
        None => String::from_utf8(converted).map_err(|error| error.to_string()),
    })
}

/// Calls a function with each object of a list, until it returns a result. Nothing is kept of the objects.
fn each_object<T>(
    objects: &str,
    visit: impl FnMut(usize, &str) -> Option<T>,
) -> Result<Option<T>, RequestError> {
    let each = Each { visit };
    let result = Deserializer::from_str(objects).deserialize_seq(each);
    result.map_err(|error| {
        RequestError::bad_request(format!("`request.objects` is not a list: {error}"))
    })
}

/// Visitor of the objects of a list.
struct Each<F> {
    visit: F,
}

impl<'de, T, F: FnMut(usize, &str) -> Option<T>> Visitor<'de> for Each<F> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut objects: A) -> Result<Self::Value, A::Error> {
        let mut index = 0;
        while let Some(object) = objects.next_element::<&RawValue>()? {
            if let Some(result) = (self.visit)(index, object.get()) {
                // serde requires that a list is read to its end.
                while objects.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(Some(result));
            }
            index += 1;
        }
        Ok(None)
    }
}

/// Converts an object, and appends its text.
fn convert_text(
    object: &str,
    to: &str,
    validators: &ValidatorRegistry,
    converted: &mut Vec<u8>,
) -> Result<(), String> {
    let mut deep = DeepParts::new();
    let mut object: Value = serde_json::from_str(object)
        .or_else(|_| serde_json::from_str(&deep.cut(object)))
        .map_err(|error| error.to_string())?;
    deep.cut_stored_specs(&mut object);
    let object = convert_object(&object, to, validators)?;
    if deep.is_empty() {
        return serde_json::to_writer(converted, &object).map_err(|error| error.to_string());
    }
    deep.restore(&object.to_string(), converted);
    Ok(())
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
    use std::sync::Arc;

    use lockstep_shared_validation::{Ruleset, ValidatedResource, VersionMapping};
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct Lamp {}

    impl ValidatedResource for Lamp {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Lamp";

        fn crd() -> Value {
            let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            let mut crd = json!({"spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Lamp", "plural": "lamps"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            }});
            for version in Self::additional_versions() {
                version.add_to(&mut crd);
            }
            crd
        }

        fn example() -> Value {
            json!({"spec": {}})
        }

        fn additional_versions() -> Vec<VersionMapping> {
            vec![
                VersionMapping::new("v1beta1")
                    .moves(&[("spec.watts", "spec.power")])
                    .only_in_storage(&["spec.note"]),
            ]
        }
    }

    /// Returns the converted objects as text.
    fn converted(objects: &str, version: &str) -> String {
        let ruleset = Ruleset::<Lamp>::compile().expect("rules");
        let registry = ValidatorRegistry::default().register(Arc::new(ruleset));
        let body = format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{"uid":"u","objects":{objects},"desiredAPIVersion":"example.com/{version}"}}}}"#
        );
        let review = convert(body.as_bytes(), &registry, |_| Ok(())).expect("a review");
        let ConversionResponse {
            result,
            converted_objects,
            ..
        } = review.response;
        assert_eq!(result.message, "");
        converted_objects.get().to_owned()
    }

    /// The threads of tests have a smaller stack than those of the webhook, 2 MiB instead of 8 MiB.
    #[test]
    fn an_object_that_is_nested_thousands_of_levels_deep_is_converted_and_nothing_of_it_is_lost() {
        for levels in [300, 9_000] {
            require_lossless(levels);
        }
    }

    /// Converts an object that is nested as deep there and back.
    fn require_lossless(levels: usize) {
        let deep = format!("{}[1]{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let lamp = |field: &str, note: &str| {
            format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{{}},"spec":{{{note}"{field}":{deep}}}}}"#
            )
        };
        let other =
            r#"{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{},"spec":{"watts":1}}"#;
        let plain = lamp("watts", "");
        let expected = format!(
            "[{},{}]",
            plain.replace("watts", "power"),
            other.replace("watts", "power")
        );
        let expected = expected.replace("com/v1", "com/v1beta1");
        assert_eq!(
            converted(&format!("[{plain},{other}]"), "v1beta1"),
            expected
        );
        assert_eq!(converted(&expected, "v1"), format!("[{plain},{other}]"));
        // The other version cannot express the note: an annotation contains the whole spec.
        let noted = format!("[{}]", lamp("watts", r#""note":"b","#));
        let there = converted(&noted, "v1beta1");
        assert_ne!(there, noted);
        assert_eq!(converted(&there, "v1"), noted);
    }

    fn message(review: &Value) -> String {
        let registry = ValidatorRegistry::default();
        let result = convert(review.to_string().as_bytes(), &registry, |_| Ok(()));
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

    #[test]
    fn the_memory_of_a_list_does_not_depend_on_the_number_of_its_items() {
        const ITEMS: usize = 1_000_000;
        let items = format!("[{}1]", "1,".repeat(ITEMS - 1));
        let mut visited = 0;
        let all: Option<()> = each_object(&items, |index, item| {
            // Each item is seen before the next one is read, in the text of the list.
            assert_eq!((index, item), (visited, "1"));
            assert!(items.as_bytes().as_ptr_range().contains(&item.as_ptr()));
            visited += 1;
            None
        })
        .expect("a list");
        assert_eq!((all, visited), (None, ITEMS));
        assert_eq!(
            largest_estimate(&items).expect("a list"),
            parsed_size_estimate(b"1")
        );
        let body = format!(
            r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{"uid":"u","desiredAPIVersion":"a/v1","objects":{items}}}}}"#
        );
        assert!(size_estimate(body.as_bytes()) >= TEXT_COPIES * 2 * ITEMS);
        let registry = ValidatorRegistry::default();
        let converted = convert(body.as_bytes(), &registry, |_| Ok(())).expect("a review");
        assert_eq!(
            converted.response.result.message,
            "objects[0]: no ruleset is registered for kind `` of ``"
        );
        assert_eq!(converted.response.converted_objects.get(), "[]");
    }

    #[test]
    fn the_memory_for_the_largest_object_is_reserved_before_one_is_parsed() {
        let large = json!({"apiVersion": "example.com/v1", "list": vec![0; 1000]}).to_string();
        let body = |objects: &str| {
            format!(
                r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{"uid":"u","objects":{objects},"desiredAPIVersion":"a/v1"}}}}"#
            )
        };
        let refused = |objects: &str| {
            let mut estimate = None;
            let registry = ValidatorRegistry::default();
            let result = convert(body(objects).as_bytes(), &registry, |bytes| {
                estimate = Some(bytes);
                Err::<(), _>(RequestError::overloaded())
            });
            (estimate, result.err().map(|error| error.code.as_u16()))
        };
        let estimate = parsed_size_estimate(large.as_bytes());
        assert_eq!(
            refused(&format!("[1,{large},{{}}]")),
            (Some(estimate), Some(429))
        );
        assert_eq!(refused("null"), (Some(0), Some(429)));
        for broken in ["{}", "1", "[1,", "[1}"] {
            assert_eq!(refused(broken), (None, Some(400)), "{broken}");
        }
    }
}
