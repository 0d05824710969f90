//! Fields that the schema does not know: refused where the API server decodes strictly.

use serde_json::Value;

use crate::field_error::FieldError;
use crate::field_path::Cursor;
use crate::rule::Layer;
use crate::ruleset::Report;
use crate::schema::Schema;
use crate::verdict::Violation;

/// Reports every field that the API server would call unknown under `fieldValidation=Strict`.
pub(crate) fn report(object: &Value, schema: &Schema, report: &mut Report) {
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            field(schema, name, value, Cursor::Root.child(name), report);
        }
    }
}

fn field(parent: &Schema, name: &str, value: &Value, at: Cursor<'_>, report: &mut Report) {
    match parent.field(name) {
        Some(schema) => walk(schema, value, at, report),
        None if parent.preserves_unknown => {}
        None => {
            let path = at.to_path();
            let mut known = parent.properties.keys().map(String::as_str);
            let detail = match known.find(|candidate| candidate.eq_ignore_ascii_case(name)) {
                Some(candidate) => format!("unknown field; did you mean `{candidate}`?"),
                None => "unknown field; the API server would drop it".to_owned(),
            };
            let rule = format!("{}/unknown", path.as_str());
            let error = FieldError::forbidden(path, detail);
            report.add(
                Violation {
                    rule,
                    layer: Layer::Structural,
                    error,
                },
                false,
            );
        }
    }
}

fn walk(schema: &Schema, value: &Value, at: Cursor<'_>, report: &mut Report) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                field(schema, name, value, at.child(name), report);
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    walk(schema, item, at.index(index), report);
                }
            }
        }
        _ => {}
    }
}
