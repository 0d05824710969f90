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
    fn named(name: &str, schema: Option<&'a Schema>, preserves: bool) -> Self {
        let Some(schema) = schema else {
            return Self::Unknown;
        };
        match (schema.properties.get(name), &schema.additional) {
            (Some(child), _) => Self::Described(child),
            (None, Additional::Of(child)) => Self::Described(child),
            (None, Additional::Any | Additional::Forbidden) => Self::Bare,
            (None, Additional::Unstated) if preserves => Self::Preserved,
            (None, Additional::Unstated) => Self::Unknown,
        }
    }
}

/// Reports all fields that the API server would report as unknown with `fieldValidation=Strict`.
pub(crate) fn report(object: &Value, schema: &Schema, report: &mut Report<'_>) {
    walk(Part::root(schema), object, Cursor::Root, report);
}

/// Reports the unknown fields of a part of an object.
pub(crate) fn below(schema: &Schema, value: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    walk(Part::described(schema), value, at, report);
}

/// Part of an object, with what the pruning of the API server knows of it.
#[derive(Clone, Copy)]
struct Part<'a> {
    schema: Option<&'a Schema>,
    is_resource: bool,
    /// If true, unknown fields are kept.
    preserves: bool,
}

impl<'a> Part<'a> {
    fn new(schema: Option<&'a Schema>) -> Self {
        Self {
            schema,
            is_resource: schema.is_some_and(|schema| schema.embedded),
            preserves: schema.is_some_and(|schema| schema.preserves_unknown),
        }
    }

    fn described(schema: &'a Schema) -> Self {
        Self::new(Some(schema))
    }

    fn root(schema: &'a Schema) -> Self {
        Self {
            is_resource: true,
            ..Self::described(schema)
        }
    }

    /// Returns the items of this list. What a list preserves, its items preserve. Returns nothing if that is all of them.
    fn items(self) -> Option<Self> {
        let schema = self.schema.and_then(|schema| schema.items.as_deref());
        if schema.is_none() && self.preserves {
            return None;
        }
        let items = Self::new(schema);
        Some(Self {
            preserves: items.preserves || self.preserves,
            ..items
        })
    }

    fn field(self, name: &str) -> Field<'a> {
        Field::named(name, self.schema, self.preserves)
    }
}

/// Walks through an object as the pruning of the API server does.
fn walk(part: Part<'_>, value: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if part.is_resource && TYPE_AND_METADATA.contains(&name.as_str()) {
                    continue;
                }
                match part.field(name) {
                    Field::Described(child) => {
                        walk(Part::described(child), value, at.child(name), report);
                    }
                    Field::Bare => walk(Part::new(None), value, at.child(name), report),
                    Field::Preserved => {}
                    Field::Unknown => unknown(part.schema, name, at, report),
                }
            }
        }
        Value::Array(items) => {
            let Some(item) = part.items() else {
                return;
            };
            for (index, value) in items.iter().enumerate() {
                walk(item, value, at.index(index), report);
            }
        }
        _ => {}
    }
}

/// Removes the fields that the API server prunes whenever it reads an object, from a request or from storage.
/// Returns true if any field was removed.
pub(crate) fn prune(object: &mut Value, schema: &Schema) -> bool {
    prune_below(Part::root(schema), object)
}

fn prune_below(part: Part<'_>, value: &mut Value) -> bool {
    let mut drops = false;
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            if part.is_resource && TYPE_AND_METADATA.contains(&name.as_str()) {
                return true;
            }
            let below = match part.field(name) {
                Field::Described(child) => Some(child),
                Field::Bare => None,
                Field::Preserved => return true,
                Field::Unknown => {
                    drops = true;
                    return false;
                }
            };
            drops |= prune_below(Part::new(below), value);
            true
        }),
        Value::Array(items) => {
            if let Some(item) = part.items() {
                for value in items {
                    drops |= prune_below(item, value);
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
