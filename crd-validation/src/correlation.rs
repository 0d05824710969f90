//! Correlation of a value with the value that it replaces.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// Value together with the value that it replaces.
///
/// This follows the API server step by step, because it decides which errors are ratcheted:
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting>.
#[derive(Clone, Copy)]
pub(crate) struct Correlation<'a> {
    pub(crate) new: &'a Value,
    old: &'a Value,
    schema: &'a Schema,
}

impl<'a> Correlation<'a> {
    pub(crate) fn new(schema: &'a Schema, new: &'a Value, old: &'a Value) -> Self {
        Self { new, old, schema }
    }

    /// Returns a field, if both objects have it and the schema describes it.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let new = self.new.as_object()?.get(name)?;
        let old = self.old.as_object()?.get(name)?;
        let schema = self.schema.field(name)?;
        Some(Self { new, old, schema })
    }

    /// Returns the items, for lookup by index.
    pub(crate) fn items(&self) -> Items<'a> {
        Items {
            new: self.new,
            schema: self.schema.items.as_deref(),
            counterparts: Counterparts::new(self.schema, self.old),
        }
    }

    /// Returns true if the value is unchanged. An object with a field that the schema does not describe always
    /// counts as changed.
    pub(crate) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Null, old) => old.is_null(),
            (Value::Array(new), Value::Array(old)) => {
                let by_key = matches!(self.schema.list_type, ListType::Map(_));
                new.len() == old.len()
                    && if by_key {
                        let items = self.items();
                        (0..new.len())
                            .all(|index| items.get(index).is_some_and(|item| item.is_unchanged()))
                    } else {
                        new == old
                    }
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.field(name).is_some_and(|field| field.is_unchanged()))
            }
            (new, old) => new == old,
        }
    }
}

/// Items of a list together with the items that they replace.
pub(crate) struct Items<'a> {
    new: &'a Value,
    schema: Option<&'a Schema>,
    counterparts: Counterparts<'a>,
}

impl<'a> Items<'a> {
    /// Returns the item at an index, if it has a counterpart in the old list.
    pub(crate) fn get(&self, index: usize) -> Option<Correlation<'a>> {
        let new = self.new.as_array()?.get(index)?;
        let old = self.counterparts.of(new)?;
        let schema = self.schema?;
        Some(Correlation { new, old, schema })
    }
}

/// Items of an old list by their keys. Only lists of type `map` have keys.
pub(crate) struct Counterparts<'a> {
    keys: &'a [String],
    /// If several items have the same keys, this contains the first.
    by_keys: HashMap<String, &'a Value>,
}

impl<'a> Counterparts<'a> {
    pub(crate) fn new(list: &'a Schema, old: &'a Value) -> Self {
        let keys = match &list.list_type {
            ListType::Map(keys) => keys.as_slice(),
            _ => &[],
        };
        let mut by_keys = HashMap::new();
        let items = old.as_array().filter(|_| !keys.is_empty());
        for item in items.into_iter().flatten() {
            if let Some(identity) = identity(keys, item) {
                by_keys.entry(identity).or_insert(item);
            }
        }
        Self { keys, by_keys }
    }

    /// Returns the old item with the same keys.
    pub(crate) fn of(&self, item: &Value) -> Option<&'a Value> {
        self.by_keys.get(&identity(self.keys, item)?).copied()
    }
}

/// Returns the key values of an item as text, or `None` if a key is missing or not a scalar.
fn identity(keys: &[String], item: &Value) -> Option<String> {
    if keys.is_empty() {
        return None;
    }
    let mut identity = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => identity.push_str(&scalar.to_string()),
        }
        identity.push(',');
    }
    Some(identity)
}

/// Ratcheting state of CEL rules, passed down along the object.
#[derive(Clone, Copy)]
pub(crate) struct Ratchet<'a> {
    current: Option<Correlation<'a>>,
    /// The nearest ancestor that has a counterpart. It decides if the value itself has none.
    ancestor: Option<Correlation<'a>>,
}

impl<'a> Ratchet<'a> {
    pub(crate) fn new(root: Option<Correlation<'a>>) -> Self {
        Self {
            current: root,
            ancestor: None,
        }
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        let decides = self.current.or(self.ancestor);
        decides.is_some_and(|correlation| correlation.is_unchanged())
    }

    pub(crate) fn field(self, name: &str) -> Self {
        self.below(|current| current.field(name))
    }

    /// Returns the items of a list, for lookup by index.
    pub(crate) fn items(&self) -> Option<Items<'a>> {
        self.current.map(|current| current.items())
    }

    pub(crate) fn item(self, items: Option<&Items<'a>>, index: usize) -> Self {
        self.below(|_| items?.get(index))
    }

    fn below(self, step: impl Fn(&Correlation<'a>) -> Option<Correlation<'a>>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self {
                current: step(&current),
                ancestor: Some(current),
            },
        }
    }
}
