//! Validation of `metadata`. The API server validates it with built-in rules, not with the CRD's schema.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::field::error::FieldError;
use crate::field::path::Cursor;
use crate::format::name;
use crate::json::types::{as_integer, type_name};
use crate::report::Report;
use crate::schema::{JsonType, Schema};
use crate::unknown_fields;

/// Maximum total size of all annotations: 256 KiB.
const ANNOTATIONS_MAX_BYTES: usize = 256 << 10;

/// Allowed names of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// DNS subdomains: names of custom resources.
    Subdomains,
    /// Any path segment: names of embedded resources of any kind.
    Segments,
}

/// Reports errors that the API server's decoder would report: fields of the wrong type and unknown fields.
pub(crate) fn validate_shape(metadata: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    types(&SHAPE, metadata, at, report);
    unknown_fields::below(&SHAPE, metadata, at, report);
}

/// Reports errors in the values of the fields.
pub(crate) fn validate_content(
    metadata: &Value,
    at: Cursor<'_>,
    names: Names,
    report: &mut Report<'_>,
) {
    let text = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    for (field, prefix) in [("name", false), ("generateName", true)] {
        if let Some(value) = text(field)
            && let Some(problem) = misnamed(value, prefix, names)
        {
            invalid(report, at.child(field), value, &problem);
        }
    }
    if let Some(namespace) = text("namespace").filter(|value| !name::is_dns1123_label(value)) {
        invalid(report, at.child("namespace"), namespace, LABEL);
    }
    let entries = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    let labels = at.child("labels");
    for (key, value) in entries("labels") {
        if !name::is_qualified_name(key) {
            invalid(report, labels, key, QUALIFIED);
        }
        if let Some(value) = value.as_str().filter(|value| !name::is_label_value(value)) {
            invalid(report, labels, value, LABEL_VALUE);
        }
    }
    let annotations = at.child("annotations");
    for (key, _) in entries("annotations") {
        if !name::is_qualified_name(&key.to_lowercase()) {
            invalid(report, annotations, key, QUALIFIED);
        }
    }
    finalizers(metadata, at, report);
    owners(metadata, at, report);
    let bytes: usize = entries("annotations")
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > ANNOTATIONS_MAX_BYTES {
        let error = FieldError::too_long(annotations.to_path(), ANNOTATIONS_MAX_BYTES as u64);
        report.deny("maxLength", annotations, error);
    }
}

fn items<'a>(metadata: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + Clone {
    let list = metadata.get(field).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default().iter()
}

fn invalid(report: &mut Report<'_>, at: Cursor<'_>, value: &str, detail: &str) {
    let error = FieldError::invalid(at.to_path(), value, detail);
    report.deny("format", at, error);
}

fn finalizers(metadata: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    let below = at.child("finalizers");
    // The decoder reads null as the empty string.
    let written = items(metadata, "finalizers").filter_map(|item| match item {
        Value::Null => Some(""),
        item => item.as_str(),
    });
    for finalizer in written.clone() {
        if !name::is_qualified_name(finalizer) {
            invalid(report, below, finalizer, QUALIFIED);
        }
    }
    let both = ["orphan", "foregroundDeletion"];
    if both
        .iter()
        .all(|one| written.clone().any(|name| name == *one))
    {
        let detail = "`orphan` and `foregroundDeletion` must not both be set";
        invalid(report, below, "orphan", detail);
    }
}

fn owners(metadata: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    let below = at.child("ownerReferences");
    for owner in items(metadata, "ownerReferences") {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner
                .get(field)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
            {
                invalid(report, below.child(field), "", "must not be empty");
            }
        }
        let field_text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (field_text("apiVersion"), field_text("kind"));
        if api_version.matches('/').count() > 1 {
            let detail = "must be a version, or a group and a version with a slash between them";
            invalid(report, below.child("apiVersion"), api_version, detail);
        }
        if kind == "Event" && matches!(api_version, "v1" | "events.k8s.io/v1") {
            invalid(report, below, "Event", "must not be an owner");
        }
    }
    let controllers = items(metadata, "ownerReferences")
        .filter(|owner| owner["controller"] == true)
        .count();
    if controllers > 1 {
        let detail = "only one owner may have `controller` set to true";
        report_hidden(report, below, detail);
    }
}

/// Validates the metadata of a custom resource as the user wrote it.
pub(crate) fn validate(object: &Value, is_namespaced: bool, report: &mut Report<'_>) {
    let at = Cursor::Root.child("metadata");
    let empty = json!({});
    let metadata = object.get("metadata").unwrap_or(&empty);
    validate_shape(metadata, at, report);
    let namespace = metadata["namespace"].as_str();
    if !is_namespaced && let Some(namespace) = namespace.filter(|name| !name.is_empty()) {
        let below = at.child("namespace");
        let detail = "is ignored: the kind is cluster-scoped; remove it";
        let error = FieldError::invalid(below.to_path(), namespace, detail);
        report.advise("namespace", below, error);
        let mut cleared = object.clone();
        clear_namespace(&mut cleared);
        validate_content(&cleared["metadata"], at, Names::Subdomains, report);
    } else {
        validate_content(metadata, at, Names::Subdomains, report);
    }
    let named = |field: &str| {
        metadata[field]
            .as_str()
            .is_some_and(|name| !name.is_empty())
    };
    if !named("name") && !named("generateName") {
        let below = at.child("name");
        let error = FieldError::required(below.to_path(), "name or generateName is required");
        report.deny("required", below, error);
    }
}

/// Removes the namespace of a cluster-scoped object, as the API server does on every write.
pub(crate) fn clear_namespace(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
}

/// Validates changes of the metadata of a custom resource: the API server sets some fields itself.
pub(crate) fn validate_change(object: &Value, old: &Value, report: &mut Report<'_>) {
    let at = Cursor::Root.child("metadata");
    let (metadata, old) = (&object["metadata"], &old["metadata"]);
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (&metadata[field], &old[field]);
        // An omitted field keeps its value, and so do the deletion timestamp and grace period of an object
        // that is already being deleted.
        let is_free = if field == "uid" {
            old.is_null()
        } else {
            !old.is_null()
        };
        if !new.is_null() && new != old && !is_free {
            let below = at.child(field);
            let detail = "may not be changed; leave it out";
            let error = FieldError::invalid(below.to_path(), new, detail);
            report.deny("immutable", below, error);
        }
    }
    if old["deletionTimestamp"].is_null() {
        return;
    }
    let before: HashSet<_> = items(old, "finalizers").collect();
    for finalizer in items(metadata, "finalizers") {
        if !before.contains(finalizer) {
            let below = at.child("finalizers");
            let detail =
                format!("no finalizer may be added while the object is being deleted: {finalizer}");
            report.deny(
                "added",
                below,
                FieldError::forbidden(below.to_path(), detail),
            );
        }
    }
}

fn report_hidden(report: &mut Report<'_>, at: Cursor<'_>, detail: &str) {
    report.deny(
        "format",
        at,
        FieldError::invalid_hidden(at.to_path(), detail),
    );
}

fn misnamed(value: &str, prefix: bool, names: Names) -> Option<String> {
    match names {
        Names::Subdomains => {
            let name = if prefix {
                name::unprefixed(value)
            } else {
                value.to_owned()
            };
            (!name::is_dns1123_subdomain(&name)).then(|| SUBDOMAIN.to_owned())
        }
        Names::Segments => {
            if !prefix && matches!(value, "." | "..") {
                return Some(format!("may not be '{value}'"));
            }
            let stray = ['/', '%'].into_iter().find(|c| value.contains(*c));
            stray.map(|c| format!("may not contain '{c}'"))
        }
    }
}

/// Reports values of the wrong type. The decoder accepts null for all types.
fn types(schema: &Schema, value: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    let expected = schema.json_type.map_or("object", JsonType::as_str);
    let actual = type_name(value);
    if value.is_null() {
        return;
    }
    let is_whole = || value.as_number().is_some_and(|n| as_integer(n).is_some());
    if expected != actual && !(expected == "integer" && is_whole()) {
        let path = at.to_path();
        let detail = format!(
            "{} in body must be of type {expected}: \"{actual}\"",
            path.as_str()
        );
        let error = FieldError::type_invalid(path, actual, detail);
        return report.deny("type", at, error);
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(child) = schema.properties.get(name) {
                    types(child, value, at.child(name), report);
                } else if let Some(child) = schema.additional() {
                    types(child, value, at.key(name), report);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(child) = &schema.items {
                    types(child, item, at.index(index), report);
                }
            }
        }
        Value::String(text) if schema.format.is_some_and(|format| !format.holds(text)) => {
            let path = at.to_path();
            let detail = format!("must be of type {}", schema.format_name);
            let error = FieldError::type_invalid(path, text.as_str(), detail);
            report.deny("format", at, error);
        }
        _ => {}
    }
}

const SUBDOMAIN: &str = "must consist of lower-case letters, digits, '-' and '.', begin and end with a letter or digit, and have at most 253 characters";
const LABEL: &str = "must consist of lower-case letters, digits and '-', begin and end with a letter or digit, and have at most 63 characters";
const QUALIFIED: &str = "must consist of at most 63 letters, digits, '-', '_' and '.', begin and end with a letter or digit, with a DNS subdomain and '/' before it or not";
const LABEL_VALUE: &str = "must be empty, or consist of at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit";

/// `ObjectMeta`: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/>.
static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
    let text = || json!({"type": "string"});
    let flag = || json!({"type": "boolean"});
    let time = || json!({"type": "string", "format": "date-time"});
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let shape = json!({
        "type": "object",
        "properties": {
            "name": text(), "generateName": text(), "namespace": text(), "selfLink": text(),
            "uid": text(), "resourceVersion": text(),
            "generation": {"type": "integer"},
            "creationTimestamp": time(), "deletionTimestamp": time(),
            "deletionGracePeriodSeconds": {"type": "integer"},
            "labels": texts(), "annotations": texts(),
            "finalizers": {"type": "array", "items": text()},
            "ownerReferences": {"type": "array", "items": {"type": "object", "properties": {
                "apiVersion": text(), "kind": text(), "name": text(), "uid": text(),
                "controller": flag(), "blockOwnerDeletion": flag(),
            }}},
            "managedFields": {"type": "array", "items": {"type": "object", "properties": {
                "manager": text(), "operation": text(), "apiVersion": text(), "time": time(),
                "fieldsType": text(), "subresource": text(),
                "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        },
    });
    Schema::compile(&shape, "metadata").expect("the literal schema is valid, as a test verifies")
});

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(metadata: &Value) -> Vec<String> {
        let mut report = Report::default();
        validate(&json!({"metadata": metadata}), true, &mut report);
        report
            .into_result(Value::Null, vec![])
            .errors
            .into_iter()
            .map(|v| v.error.path.to_string())
            .collect()
    }

    #[test]
    fn metadata_is_validated_as_the_decoder_and_validation_of_the_api_server_do() {
        assert_eq!(
            problems(&json!({"name": "a.b", "labels": {"x/y": "Z"}, "creationTimestamp": null})),
            [""; 0]
        );
        assert_eq!(problems(&json!({})), ["metadata.name"]);
        assert_eq!(problems(&json!({"name": "A"})), ["metadata.name"]);
        assert_eq!(
            problems(&json!({"generateName": "a-", "foo": 1})),
            ["metadata.foo"]
        );
        assert_eq!(
            problems(&json!({"name": "a", "labels": {"a": 5}})),
            ["metadata.labels[a]"]
        );
        assert_eq!(
            problems(&json!({"name": "a", "labels": {"a b": "-"}})),
            ["metadata.labels"; 2]
        );
    }
}
