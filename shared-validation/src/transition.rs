//! Which part of the old object a part of the new one is compared with.

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// A value beside the one that it replaces.
///
/// Follows the API server step by step, because what it ratchets is decided here:
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

    /// The field of that name, if both objects have it and the schema knows it.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let new = self.new.as_object()?.get(name)?;
        let old = self.old.as_object()?.get(name)?;
        let schema = self.schema.field(name)?;
        Some(Self { new, old, schema })
    }

    /// The item at that place, if it has a counterpart.
    pub(crate) fn item(&self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = counterpart(self.schema, new, self.old)?;
        let schema = self.schema.items.as_deref()?;
        Some(Self { new, old, schema })
    }

    /// Whether the value is what it was. An object with a field that the schema does not know never
    /// is.
    pub(crate) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Null, old) => old.is_null(),
            (Value::Array(new), Value::Array(old)) => {
                let by_key = matches!(self.schema.list_type, ListType::Map(_));
                new.len() == old.len()
                    && if by_key {
                        (0..new.len())
                            .all(|index| self.item(index).is_some_and(|item| item.is_unchanged()))
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

/// The item of `old` with the same keys as `item`. Only the items of a map list have one.
pub(crate) fn counterpart<'a>(list: &Schema, item: &Value, old: &'a Value) -> Option<&'a Value> {
    let ListType::Map(keys) = &list.list_type else {
        return None;
    };
    let has_key = |key: &String| {
        let value = item.get(key);
        value.is_some_and(|value| !value.is_null() && !value.is_object() && !value.is_array())
    };
    if keys.is_empty() || !keys.iter().all(has_key) {
        return None;
    }
    old.as_array()?
        .iter()
        .find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

/// How the errors of a CEL rule are told to be inherited, walked down with the object.
#[derive(Clone, Copy)]
pub(crate) struct Ratchet<'a> {
    current: Option<Correlation<'a>>,
    /// The nearest ancestor that has a counterpart; it decides where the value itself has none.
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

    pub(crate) fn item(self, index: usize) -> Self {
        self.below(|current| current.item(index))
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
