//! Lists whose items must be unique: lists of type `set` and `map`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::field::error::FieldError;
use crate::field::path::Cursor;
use crate::format::go_fmt;
use crate::layer::LayerContext;
use crate::report::Report;
use crate::schema::{ListType, Schema};
use crate::violation::{Violation, fingerprint};

/// Reports duplicate items. If the old object had any, all of them are ratcheted, as in the API server.
pub(crate) fn validate(case: &LayerContext<'_>, report: &mut Report<'_>) {
    let mut found = Vec::new();
    below(case.schema, case.object, Cursor::Root, &mut found);
    if found.is_empty() {
        return;
    }
    let mut before = Vec::new();
    if let Some(old) = case.old {
        below(case.schema, old, Cursor::Root, &mut before);
    }
    for violation in found {
        report.deny_or_ratchet(violation, !before.is_empty());
    }
}

fn below(schema: &Schema, value: &Value, at: Cursor<'_>, found: &mut Vec<Violation>) {
    if !schema.has_identities {
        return;
    }
    match value {
        Value::Array(items) => {
            let known = found.len();
            match &schema.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    let known_by = items.iter().map(|item| (item.clone(), printed(item)));
                    duplicates(known_by, at, found);
                }
                ListType::Map(keys) => map_list(keys, items, at, found),
            }
            for violation in &mut found[known..] {
                violation.inputs = Some(fingerprint([value]));
            }
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    below(child, item, at.index(index), found);
                }
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(child) = schema.additional() {
                    below(child, value, at.key(name), found);
                }
                if let Some(child) = schema.properties.get(name) {
                    below(child, value, at.child(name), found);
                }
            }
        }
        _ => {}
    }
}

fn map_list(keys: &[String], items: &[Value], at: Cursor<'_>, found: &mut Vec<Violation>) {
    let stray = items
        .iter()
        .position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = stray {
        let below = at.index(index);
        let detail = "must be an object for an array of list-type map";
        let error = FieldError::invalid(below.to_path(), items[index].clone(), detail);
        return push(below, error, found);
    }
    let known_by = items.iter().map(|item| {
        let stated = keys
            .iter()
            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        let stated = Value::Object(stated.collect());
        // A single key is reported by its value, several keys as an object.
        let identity = match keys {
            [key] => stated.get(key).map_or_else(String::new, printed),
            _ => printed(&stated),
        };
        (stated, identity)
    });
    duplicates(known_by, at, found);
}

/// Reports each identity once, at its second occurrence, with the value that belongs to it.
fn duplicates(
    known_by: impl Iterator<Item = (Value, String)>,
    at: Cursor<'_>,
    found: &mut Vec<Violation>,
) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, (value, identity)) in known_by.enumerate() {
        let times = seen.entry(identity).or_default();
        *times += 1;
        if *times == 2 {
            let below = at.index(index);
            let error = FieldError::duplicate(below.to_path(), value);
            push(below, error, found);
        }
    }
}

/// Returns the identity of an item as text. A whole float differs from the integer, except within an object,
/// where both are formatted the same.
fn printed(identity: &Value) -> String {
    match identity {
        Value::Number(number) if number.as_i64().is_none() => format!("float {number}"),
        other => go_fmt::json(other),
    }
}

fn push(at: Cursor<'_>, error: FieldError, found: &mut Vec<Violation>) {
    found.push(Violation::of_schema("x-kubernetes-list-type", at, error));
}
