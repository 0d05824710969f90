//! Which part of the old object a part of the new one is compared with.

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// A value beside the one it replaces, walked down together with the schema.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) new: &'a Value,
    /// What an inherited error is judged by. Absent where there is nothing to compare with.
    pub(crate) old: Option<&'a Value>,
    /// What `oldSelf` is.
    pub(crate) before: Option<&'a Value>,
    /// Whether the nearest ancestor that could be compared is unchanged; it decides where this node
    /// has no counterpart of its own.
    inherited: bool,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(new: &'a Value, old: Option<&'a Value>, before: Option<&'a Value>) -> Self {
        Self {
            new,
            old,
            before,
            inherited: false,
        }
    }

    /// Whether the value is what it was, so that an error in it is inherited.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.old.map_or(self.inherited, |old| old == self.new)
    }

    pub(crate) fn field(&self, name: &str, new: &'a Value) -> Self {
        let counterpart = |value: Option<&'a Value>| value?.get(name);
        self.below(new, counterpart(self.old), counterpart(self.before))
    }

    /// The pair of a list item. Only the items of a map list have a counterpart: the one with the
    /// same keys.
    pub(crate) fn item(&self, schema: &Schema, new: &'a Value) -> Self {
        let counterpart = |value: Option<&'a Value>| match &schema.list_type {
            ListType::Map(keys) => value?
                .as_array()?
                .iter()
                .find(|item| keys.iter().all(|key| item.get(key) == new.get(key))),
            ListType::Atomic | ListType::Set => None,
        };
        self.below(new, counterpart(self.old), counterpart(self.before))
    }

    fn below(&self, new: &'a Value, old: Option<&'a Value>, before: Option<&'a Value>) -> Self {
        Self {
            new,
            old,
            before,
            inherited: self.is_unchanged(),
        }
    }
}
