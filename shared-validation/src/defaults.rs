//! Defaults only add: they fill what the author left out and never change what he wrote.

use json_patch::jsonptr::{Assign, PointerBuf};
use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use crate::pointer;
use crate::schema::Schema;

/// A default that depends on other fields, and so cannot stand in the CRD.
pub struct DynamicDefault {
    /// The field, as a dotted name; filled only where its parent is there.
    pub field: &'static str,
    /// The value for an object whose static defaults are filled.
    pub value: fn(&Value) -> Option<Value>,
}

/// Fills the defaults that stand in the schema and returns what was added, as operations on the
/// object as it was. Nulls that the schema does not allow are dropped, as the API server drops them.
///
/// # Guarantees
///
/// Idempotent: filling twice adds nothing. Lossless: fields that the schema does not know stay.
pub(crate) fn fill_static(object: &mut Value, schema: &Schema) -> Vec<PatchOperation> {
    drop_nulls(object, schema);
    let mut additions = Vec::new();
    for (name, child) in &schema.properties {
        // The API server defaults neither metadata nor, for the author, status.
        if name != "metadata" && name != "status" {
            field(
                object,
                name,
                child,
                &PointerBuf::root(),
                Some(&mut additions),
            );
        }
    }
    additions
}

/// Fills the defaults that depend on other fields, once the static ones are there.
///
/// A field that an update leaves out keeps the value it had before: a default must not change what
/// runs.
pub(crate) fn fill_dynamic(
    object: &mut Value,
    before: Option<&Value>,
    defaults: &[DynamicDefault],
    additions: &mut Vec<PatchOperation>,
) {
    for default in defaults {
        let parent = default
            .field
            .rsplit_once('.')
            .map_or("", |(parent, _)| parent);
        let has_parent = pointer::get(object, parent).is_some_and(Value::is_object);
        if !has_parent || pointer::get(object, default.field).is_some() {
            continue;
        }
        let kept = before
            .and_then(|before| pointer::get(before, default.field))
            .cloned();
        if let Some(value) = kept.or_else(|| (default.value)(object)) {
            let at = PointerBuf::from_tokens(default.field.split('.'));
            record(object, &at, value, additions);
        }
    }
}

/// Adds at a place of the object, either as a new operation or inside an earlier one that adds an
/// ancestor of the place.
fn record(object: &mut Value, at: &PointerBuf, value: Value, additions: &mut Vec<PatchOperation>) {
    let within = additions.iter_mut().find_map(|operation| match operation {
        PatchOperation::Add(add) => at
            .strip_prefix(&add.path)
            .map(|rest| (rest, &mut add.value)),
        _ => None,
    });
    match within {
        // Cannot fail: the parent is an object, as the caller has seen.
        Some((rest, added)) => drop(added.assign(rest, value.clone())),
        None => additions.push(add(at.clone(), value.clone())),
    }
    drop(object.assign(at, value));
}

/// Drops the nulls that the schema does not allow: they count as left out.
fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                !value.is_null() || schema.field(name).is_none_or(|child| child.nullable)
            });
            for (name, value) in fields {
                if let Some(child) = schema.field(name) {
                    drop_nulls(value, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                for item in items {
                    drop_nulls(item, child);
                }
            }
        }
        _ => {}
    }
}

fn field(
    parent: &mut Value,
    name: &str,
    schema: &Schema,
    at: &PointerBuf,
    additions: Option<&mut Vec<PatchOperation>>,
) {
    let Some(fields) = parent.as_object_mut() else {
        return;
    };
    let mut at = at.clone();
    at.push_back(name);
    if let Some(value) = fields.get_mut(name) {
        return below(value, schema, &at, additions);
    }
    let Some(default) = &schema.default else {
        return;
    };
    let mut value = default.clone();
    below(&mut value, schema, &at, None);
    if let Some(additions) = additions {
        additions.push(add(at, value.clone()));
    }
    fields.insert(name.to_owned(), value);
}

fn below(
    value: &mut Value,
    schema: &Schema,
    at: &PointerBuf,
    mut additions: Option<&mut Vec<PatchOperation>>,
) {
    for (name, child) in &schema.properties {
        field(value, name, child, at, additions.as_deref_mut());
    }
    match (value, &schema.additional, &schema.items) {
        (Value::Object(fields), Some(child), _) => {
            for (name, value) in fields
                .iter_mut()
                .filter(|(name, _)| !schema.properties.contains_key(*name))
            {
                let mut at = at.clone();
                at.push_back(name.as_str());
                below(value, child, &at, additions.as_deref_mut());
            }
        }
        (Value::Array(items), _, Some(child)) => {
            for (index, item) in items.iter_mut().enumerate() {
                let mut at = at.clone();
                at.push_back(index);
                below(item, child, &at, additions.as_deref_mut());
            }
        }
        _ => {}
    }
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}
