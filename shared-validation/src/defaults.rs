//! Defaults only add: they fill what the author left out and never change what he wrote.

use json_patch::jsonptr::{Assign, PointerBuf};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::Value;

use crate::go;
use crate::pointer;
use crate::schema::Schema;

/// A default that depends on other fields, and so cannot stand in the CRD.
pub struct DynamicDefault {
    /// The field, as a dotted name; filled only where its parent is there.
    pub field: &'static str,
    /// The value for an object whose static defaults are filled.
    pub value: fn(&Value) -> Option<Value>,
}

/// Fills the defaults that stand in the schema and returns what was done, as operations on the object
/// as it was. Nulls that the schema does not allow count as left out: they are removed, or replaced by
/// the default, as the API server does before anyone else sees the object.
///
/// # Guarantees
///
/// Idempotent: filling twice adds nothing. Lossless: fields that the schema does not know stay.
/// Applying the operations to the object as it was gives the object as it is.
pub(crate) fn fill_static(
    object: &mut Value,
    schema: &Schema,
    has_status_subresource: bool,
) -> Vec<PatchOperation> {
    let mut filling = Defaulting {
        operations: Vec::new(),
        // The API server defaults neither metadata nor a status that is not the author's.
        left_out: if has_status_subresource {
            &["metadata", "status"]
        } else {
            &["metadata"]
        },
    };
    if has_nulls(object) {
        filling.drop_nulls(object, schema, Place::Root);
    }
    filling.below(object, schema, Place::Root, true);
    filling.operations
}

/// Whether a default that depends on other fields may have something to fill.
pub(crate) fn lacks_dynamic(object: &Value, defaults: &[DynamicDefault]) -> bool {
    let mut fields = defaults.iter().map(|default| default.field);
    fields.any(|field| pointer::get(object, field).is_none())
}

/// Fills the defaults that depend on other fields, once the static ones are there.
///
/// A field that an update leaves out keeps the value it had before: a default must not change what
/// runs. Returns whether anything was filled.
pub(crate) fn fill_dynamic(
    object: &mut Value,
    before: Option<&Value>,
    defaults: &[DynamicDefault],
    additions: &mut Vec<PatchOperation>,
) -> bool {
    let mut fills = false;
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
            fills = true;
        }
    }
    fills
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_nulls),
        Value::Object(fields) => fields.values().any(has_nulls),
        _ => false,
    }
}

/// Whether a number is written as a float anywhere.
pub(crate) fn has_floats(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_floats),
        Value::Object(fields) => fields.values().any(has_floats),
        _ => false,
    }
}

/// The object as the API server has it once a webhook has filled something: it writes and reads it
/// again, and what was `100.0` is then `100`.
pub(crate) fn reread(object: &Value) -> Value {
    match object {
        Value::Number(number) => match go::json_number(number).parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) => object.clone(),
        },
        Value::Array(items) => items.iter().map(reread).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), reread(value)))
            .collect(),
        _ => object.clone(),
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

/// A place in an object. It becomes a pointer only where something is done there.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn to_pointer(self) -> PointerBuf {
        match self {
            Self::Root => PointerBuf::root(),
            Self::Field(parent, name) => {
                let mut at = parent.to_pointer();
                at.push_back(name);
                at
            }
            Self::Item(parent, index) => {
                let mut at = parent.to_pointer();
                at.push_back(index);
                at
            }
        }
    }
}

struct Defaulting {
    operations: Vec<PatchOperation>,
    left_out: &'static [&'static str],
}

impl Defaulting {
    /// Drops the nulls that the schema does not allow and has no default for.
    fn drop_nulls(&mut self, value: &mut Value, schema: &Schema, at: Place<'_>) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| {
                    let drops = value.is_null()
                        && schema
                            .field(name)
                            .is_some_and(|child| !child.nullable && child.default.is_none());
                    if drops {
                        let path = Place::Field(&at, name).to_pointer();
                        self.operations
                            .push(PatchOperation::Remove(RemoveOperation { path }));
                    }
                    !drops
                });
                for (name, value) in fields {
                    if let Some(child) = schema.field(name) {
                        self.drop_nulls(value, child, Place::Field(&at, name));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(child) = &schema.items {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.drop_nulls(item, child, Place::Item(&at, index));
                    }
                }
            }
            _ => {}
        }
    }

    /// Fills what lies below a value. What lies within a default that was just added is part of that
    /// addition and not `recorded` again.
    fn below(&mut self, value: &mut Value, schema: &Schema, at: Place<'_>, recorded: bool) {
        match value {
            Value::Object(fields) => {
                for (name, child) in &schema.properties {
                    if matches!(at, Place::Root) && self.left_out.contains(&name.as_str()) {
                        continue;
                    }
                    let at = Place::Field(&at, name);
                    match (fields.get_mut(name), &child.default) {
                        (Some(value), Some(default)) if value.is_null() && !child.nullable => {
                            *value = default.clone();
                            self.added(value, child, at, recorded);
                        }
                        (Some(value), _) => self.below(value, child, at, recorded),
                        (None, Some(default)) => {
                            let value = fields.entry(name).or_insert_with(|| default.clone());
                            self.added(value, child, at, recorded);
                        }
                        (None, None) => {}
                    }
                }
                let Some(child) = schema.additional() else {
                    return;
                };
                for (name, value) in fields.iter_mut() {
                    if schema.properties.contains_key(name) {
                        continue;
                    }
                    let at = Place::Field(&at, name);
                    match &child.default {
                        Some(default) if value.is_null() && !child.nullable => {
                            *value = default.clone();
                            self.added(value, child, at, recorded);
                        }
                        _ => self.below(value, child, at, recorded),
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = &schema.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    let at = Place::Item(&at, index);
                    match &child.default {
                        Some(default) if item.is_null() && !child.nullable => {
                            *item = default.clone();
                            self.below(item, child, at, false);
                            if recorded {
                                let value = item.clone();
                                self.operations
                                    .push(PatchOperation::Replace(ReplaceOperation {
                                        path: at.to_pointer(),
                                        value,
                                    }));
                            }
                        }
                        _ => self.below(item, child, at, recorded),
                    }
                }
            }
            _ => {}
        }
    }

    fn added(&mut self, value: &mut Value, schema: &Schema, at: Place<'_>, recorded: bool) {
        self.below(value, schema, at, false);
        if recorded {
            self.operations.push(add(at.to_pointer(), value.clone()));
        }
    }
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}
