//! Embedded resources: Kubernetes objects within the object (`x-kubernetes-embedded-resource`).

use serde_json::Value;

use crate::field::error::FieldError;
use crate::field::path::Cursor;
use crate::format::name;
use crate::layer::LayerContext;
use crate::metadata;
use crate::report::Report;
use crate::schema::Schema;

/// Validates all embedded resources. Their errors are never ratcheted.
pub(crate) fn validate(case: &LayerContext<'_>, report: &mut Report<'_>) {
    below(case.schema, case.object, Cursor::Root, report);
}

fn below(schema: &Schema, value: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    if !schema.has_embedded {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded {
                resource(value, at, report);
            }
            for (name, value) in fields {
                if let Some(child) = schema.properties.get(name) {
                    below(child, value, at.child(name), report);
                } else if let Some(child) = schema.additional() {
                    below(child, value, at.key(name), report);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    below(child, item, at.index(index), report);
                }
            }
        }
        _ => {}
    }
}

fn resource(object: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    let is_version = |text: &str| text.split('/').count() <= 2;
    let is_kind = |text: &str| name::is_dns1035_label(&text.to_lowercase());
    let version = "must be a version, or a group and a version with a slash between them";
    let kind = "must consist of letters, digits and '-', and begin with a letter";
    for (field, holds, expected) in [
        ("apiVersion", &is_version as &dyn Fn(&str) -> bool, version),
        ("kind", &is_kind, kind),
    ] {
        let below = at.child(field);
        let path = below.to_path();
        let error = match object.get(field) {
            None => FieldError::required(path, ""),
            Some(Value::String(text)) if text.is_empty() => {
                FieldError::invalid(path, "", "must not be empty")
            }
            Some(Value::String(text)) if holds(text) => continue,
            Some(Value::String(text)) => FieldError::invalid(path, text.as_str(), expected),
            Some(other) => FieldError::invalid(path, other, "must be a string"),
        };
        report.deny("x-kubernetes-embedded-resource", below, error);
    }
    if let Some(metadata) = object.get("metadata") {
        let below = at.child("metadata");
        metadata::validate_shape(metadata, below, report);
        metadata::validate_content(metadata, below, metadata::Names::Segments, report);
    }
}
