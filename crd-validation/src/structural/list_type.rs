//! Lists whose items must be unique: lists of type `set` and `map`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

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
    let mut before = None;
    below(case.schema, case.object, Cursor::Root, &mut |violation| {
        let inherited = *before.get_or_insert_with(|| has_duplicates(case));
        report.deny_or_ratchet(violation, inherited);
    });
}

/// Returns true if the old object has duplicate items.
fn has_duplicates(case: &LayerContext<'_>) -> bool {
    let mut found = false;
    if let Some(old) = case.old {
        below(case.schema, old, Cursor::Root, &mut |_| found = true);
    }
    found
}

fn below(schema: &Schema, value: &Value, at: Cursor<'_>, add: &mut dyn FnMut(Violation)) {
    if !schema.has_identities {
        return;
    }
    match value {
        Value::Array(items) => {
            let inputs = OnceCell::new();
            let add_with_inputs = &mut |violation| {
                let inputs = Some(*inputs.get_or_init(|| fingerprint([value])));
                add(Violation {
                    inputs,
                    ..violation
                });
            };
            match &schema.list_type {
                ListType::Atomic => {}
                ListType::Set => duplicates(items, Value::clone, printed, at, add_with_inputs),
                ListType::Map(keys) => map_list(keys, items, at, add_with_inputs),
            }
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    below(child, item, at.index(index), add);
                }
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(child) = schema.additional() {
                    below(child, value, at.key(name), add);
                }
                if let Some(child) = schema.properties.get(name) {
                    below(child, value, at.child(name), add);
                }
            }
        }
        _ => {}
    }
}

fn map_list(keys: &[String], items: &[Value], at: Cursor<'_>, add: &mut dyn FnMut(Violation)) {
    let stray = items
        .iter()
        .position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = stray {
        let below = at.index(index);
        let detail = "must be an object for an array of list-type map";
        let error = FieldError::invalid(below.to_path(), &items[index], detail);
        return add(violation(below, error));
    }
    let stated = |item: &Value| {
        let stated = keys
            .iter()
            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(stated.collect())
    };
    // A single key is reported by its value, several keys as an object.
    let identity = |item: &Value| match keys {
        [key] => item.get(key).map_or_else(String::new, printed),
        _ => printed(&stated(item)),
    };
    duplicates(items, stated, identity, at, add);
}

/// Reports each identity once, at its second occurrence, with the value that belongs to it.
///
/// A list may have a million items: only a fingerprint of each is kept, and identities of equal fingerprints are compared.
fn duplicates(
    items: &[Value],
    value: impl Fn(&Value) -> Value,
    identity: impl Fn(&Value) -> String,
    at: Cursor<'_>,
    add: &mut dyn FnMut(Violation),
) {
    let hasher = RandomState::new();
    let mut known: Vec<_> = items
        .iter()
        .map(|item| hasher.hash_one(identity(item)))
        .zip(0..)
        .collect();
    known.sort_unstable();
    let mut second = Vec::new();
    for same in known
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|same| same.len() > 1)
    {
        // Nearly always all of them are equal.
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (_, index) in same {
            let times = seen.entry(identity(&items[*index])).or_default();
            *times += 1;
            if *times == 2 {
                second.push(*index);
            }
        }
    }
    second.sort_unstable();
    for index in second {
        let below = at.index(index);
        let error = FieldError::duplicate(below.to_path(), value(&items[index]));
        add(violation(below, error));
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

fn violation(at: Cursor<'_>, error: FieldError) -> Violation {
    Violation::of_schema("x-kubernetes-list-type", at, error)
}
