//! Fields that the schema does not know: refused where the API server decodes strictly.

use serde_json::Value;

use crate::field_error::FieldError;
use crate::field_path::Cursor;
use crate::metadata;
use crate::ruleset::Report;
use crate::schema::{Additional, Schema};

/// Fields that are every object's own.
const TYPE_AND_METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What a schema has to say of a field.
enum Field<'a> {
    Described(&'a Schema),
    /// It may be there, but nothing in it.
    Bare,
    /// It may be there with all that is in it.
    Preserved,
    Unknown,
}

impl<'a> Field<'a> {
    /// The field of this name. Where there is no schema any more, every field is unknown.
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

/// Reports every field that the API server would call unknown under `fieldValidation=Strict`.
pub(crate) fn report(object: &Value, schema: &Schema, report: &mut Report<'_>) {
    walk(Some(schema), true, object, Cursor::Root, report);
}

/// The same for a part of an object.
pub(crate) fn below(schema: &Schema, value: &Value, at: Cursor<'_>, report: &mut Report<'_>) {
    walk(Some(schema), false, value, at, report);
}

/// Walks as the API server prunes.
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

/// Drops what the API server drops whenever it reads an object, be it from a request or from its store.
/// Returns whether there was any.
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
        .flat_map(|parent| parent.properties.keys());
    let detail = match nearest(name, known.map(String::as_str)) {
        Some(candidate) => format!("unknown field; did you mean `{candidate}`?"),
        None => "unknown field; the API server would drop it".to_owned(),
    };
    let error = FieldError::forbidden(below.to_path(), detail);
    metadata::report(report, "unknown", below, error);
}

/// Nothing that long is a slip of the pen, and comparing it would take time.
const LONGEST_NAME: usize = 64;

/// With how many names one is compared.
const MOST_COMPARED: usize = 1000;

/// The known name that was probably meant: the same in other case, or a slip or two away.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let lower = name.to_lowercase();
    let length = name.chars().count();
    let allowed = (1 + length / 5).min(3);
    // What is much longer or shorter is not compared: that takes time for each of its letters.
    let close = known.filter(|candidate| candidate.chars().count().abs_diff(length) <= allowed);
    let close = close.take(MOST_COMPARED);
    let compared = close.map(|candidate| {
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        (distance, candidate)
    });
    let meant = compared.filter(|(distance, _)| *distance <= allowed);
    let nearest = meant.min_by_key(|(distance, _)| *distance);
    nearest.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_name() {
        let known = ["storage", "engine", "size"];
        assert_eq!(nearest("Storage", known.into_iter()), Some("storage"));
        assert_eq!(nearest("sotrage", known.into_iter()), Some("storage"));
        assert_eq!(nearest("colour", known.into_iter()), None);
        assert_eq!(nearest("si", known.into_iter()), None);
    }
}
