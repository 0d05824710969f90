//! Unknown fields: fields that the schema does not describe. They are errors if the API server decodes
//! strictly.

use serde_json::Value;

use crate::field::error::FieldError;
use crate::field::path::Cursor;
use crate::report::Report;
use crate::schema::{Additional, Schema};
use crate::suggest::did_you_mean;

/// Fields that every object has.
const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Description of a field in the schema.
enum Field<'a> {
    Described(&'a Schema),
    /// The field may be set, but fields within it are unknown.
    Bare,
    /// The field may be set, with any content.
    Preserved,
    Unknown,
}

impl<'a> Field<'a> {
    /// Returns the description of a field. Below an undescribed field, there is no schema and every field is
    /// unknown.
    fn named(name: &str, schema: Option<&'a Schema>) -> Self {
        let Some(schema) = schema else {
            return Self::Unknown;
        };
        match (schema.properties.get(name), &schema.additional) {
            (Some(child), _) => Self::Described(child),
            (None, Additional::Of(child)) => Self::Described(child),
            (None, Additional::Any | Additional::Forbidden) => Self::Bare,
            (None, Additional::Unstated) if schema.preserves_unknown => Self::Preserved,
            (None, Additional::Unstated) => Self::Unknown,
        }
    }
}

/// Reports all fields that the API server would report as unknown with `fieldValidation=Strict`.
pub(crate) fn report(object: &Value, schema: &Schema, report: &mut Report<'_>) {
    walk(Some(schema), true, object, Cursor::Root, report);
}

/// Reports the unknown fields of a part of an object.
pub(crate) fn below(schema: &Schema, value: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    walk(Some(schema), false, value, at, report);
}

/// Walks through an object as the pruning of the API server does.
fn walk(
    schema: Option<&Schema>,
    resource: bool,
    value: &Value,
    at: Cursor<'_>,
    report: &mut Report<'_>,
) {
    let preserves = schema.is_some_and(|schema| schema.preserves_unknown);
    let resource = resource || schema.is_some_and(|schema| schema.embedded);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if resource && TYPE_AND_METADATA.contains(&name.as_str()) {
                    continue;
                }
                match Field::named(name, schema) {
                    Field::Described(child) => {
                        walk(Some(child), false, value, at.child(name), report);
                    }
                    Field::Bare => walk(None, false, value, at.child(name), report),
                    Field::Preserved => {}
                    Field::Unknown => unknown(schema, name, at, report),
                }
            }
        }
        Value::Array(items) => {
            let child = schema.and_then(|schema| schema.items.as_deref());
            if child.is_none() && preserves {
                return;
            }
            for (index, item) in items.iter().enumerate() {
                walk(child, false, item, at.index(index), report);
            }
        }
        _ => {}
    }
}

/// Removes the fields that the API server prunes whenever it reads an object, from a request or from storage.
/// Returns true if any field was removed.
pub(crate) fn prune(object: &mut Value, schema: &Schema) -> bool {
    prune_below(Some(schema), true, object)
}

fn prune_below(schema: Option<&Schema>, resource: bool, value: &mut Value) -> bool {
    let mut drops = false;
    let preserves = schema.is_some_and(|schema| schema.preserves_unknown);
    let resource = resource || schema.is_some_and(|schema| schema.embedded);
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            if resource && TYPE_AND_METADATA.contains(&name.as_str()) {
                return true;
            }
            let below = match Field::named(name, schema) {
                Field::Described(child) => Some(child),
                Field::Bare => None,
                Field::Preserved => return true,
                Field::Unknown => {
                    drops = true;
                    return false;
                }
            };
            drops |= prune_below(below, false, value);
            true
        }),
        Value::Array(items) => {
            let child = schema.and_then(|schema| schema.items.as_deref());
            if child.is_some() || !preserves {
                for item in items {
                    drops |= prune_below(child, false, item);
                }
            }
        }
        _ => {}
    }
    drops
}

fn unknown(parent: Option<&Schema>, name: &str, at: Cursor<'_>, report: &mut Report<'_>) {
    let below = at.child(name);
    let known = parent
        .into_iter()
        .flat_map(|parent| parent.properties.names());
    let question = did_you_mean(name, known.map(String::as_str));
    let detail = if question.is_empty() {
        "unknown field; the API server would prune it".to_owned()
    } else {
        format!("unknown field{question}")
    };
    let error = FieldError::forbidden(below.to_path(), detail);
    report.deny("unknown", below, error);
}
