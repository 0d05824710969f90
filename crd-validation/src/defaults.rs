//! Defaulting. It fills only fields that the user omitted and never changes values that the user wrote.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::Value;

use crate::schema::Schema;

/// Fills the defaults of the schema and returns the changes as operations on the original object. Nulls that
/// the schema does not allow count as omitted: they are removed, or replaced by the default, as the API server
/// does before any webhook or controller receives the object.
///
/// # Guarantees
///
/// Idempotent: a second call adds nothing. Lossless: unknown fields are kept. Applying the operations to the
/// original object produces the defaulted object.
pub(crate) fn fill_static(
    object: &mut Value,
    schema: &Schema,
    has_status_subresource: bool,
) -> Vec<PatchOperation> {
    let mut filling = Defaulting {
        operations: Vec::new(),
        // The API server fills defaults neither in metadata nor in a status that is a subresource.
        left_out: if has_status_subresource {
            &["metadata", "status"]
        } else {
            &["metadata"]
        },
    };
    if has_nulls(object) {
        filling.drop_nulls(object, schema, Location::Root);
    }
    filling.below(object, schema, Location::Root, true);
    filling.operations
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_nulls),
        Value::Object(fields) => fields.values().any(has_nulls),
        _ => false,
    }
}

/// Location in an object during a walk. It becomes a JSON pointer only if an operation is recorded.
#[derive(Clone, Copy)]
enum Location<'a> {
    Root,
    Field(&'a Location<'a>, &'a str),
    Item(&'a Location<'a>, usize),
}

impl Location<'_> {
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
    /// Removes nulls that the schema does not allow and for which it has no default.
    fn drop_nulls(&mut self, value: &mut Value, schema: &Schema, at: Location<'_>) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| {
                    let drops = value.is_null()
                        && schema
                            .field(name)
                            .is_some_and(|child| !child.nullable && child.default.is_none());
                    if drops {
                        let path = Location::Field(&at, name).to_pointer();
                        self.operations
                            .push(PatchOperation::Remove(RemoveOperation { path }));
                    }
                    !drops
                });
                for (name, value) in fields {
                    if let Some(child) = schema.field(name) {
                        self.drop_nulls(value, child, Location::Field(&at, name));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(child) = &schema.items {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.drop_nulls(item, child, Location::Item(&at, index));
                    }
                }
            }
            _ => {}
        }
    }

    /// Fills the defaults below a value. Defaults within a newly added default are part of that operation, so
    /// they are not `recorded` separately.
    fn below(&mut self, value: &mut Value, schema: &Schema, at: Location<'_>, recorded: bool) {
        match value {
            Value::Object(fields) => {
                for (name, child) in schema.properties.iter() {
                    if matches!(at, Location::Root) && self.left_out.contains(&name.as_str()) {
                        continue;
                    }
                    let at = Location::Field(&at, name);
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
                    if schema.properties.contains(name) {
                        continue;
                    }
                    let at = Location::Field(&at, name);
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
                    let at = Location::Item(&at, index);
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

    fn added(&mut self, value: &mut Value, schema: &Schema, at: Location<'_>, recorded: bool) {
        self.below(value, schema, at, false);
        if recorded {
            self.operations.push(add(at.to_pointer(), value.clone()));
        }
    }
}

fn add(path: PointerBuf, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value })
}
