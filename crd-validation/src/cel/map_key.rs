//! Identity of the items in lists of type `set` and `map`.
//!
//! The API server stores the items in a Go map. Its keys are the raw data, or the values of expressions. Two
//! values that are equal in CEL can therefore be different keys, and some values cannot be keys at all.

use std::collections::HashMap;

use ::cel::ExecutionError;
use ::cel::common::types::{
    CelBool, CelDouble, CelDuration, CelInt, CelMapKey, CelString, CelTimestamp, CelUInt, Kind,
};
use ::cel::common::value::Val;
use chrono::{DateTime, FixedOffset, TimeDelta};
use serde_json::{Number, Value};

use crate::cel::apiserver_panic;
use crate::cel::dyn_value::Unrepresentable;

/// Identity of an item.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    Key(Key),
    /// The item is not the same as any other item.
    Unique,
    /// The item has a Go type that cannot be a map key.
    Unhashable(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// Data that is null or absent.
    Absent,
    /// The null of an expression.
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    /// The bits of a float.
    Float(u64),
    Text(String),
    Duration(TimeDelta),
    Moment(DateTime<FixedOffset>),
    Several(Vec<Key>),
}

/// Parts of an item that form its identity.
#[derive(Clone, Debug)]
pub(crate) enum Identified {
    /// The whole item: a list of type `set`.
    Whole,
    /// These fields: a list of type `map`.
    By(Vec<Field>),
}

/// Field that is part of the identity of an item.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// `None` if the CEL identifier differs from the field name. The API server looks up the identifier in the
    /// data and finds nothing.
    pub(crate) name: Option<String>,
    /// If true, whole numbers are floats, too.
    pub(crate) is_float: bool,
}

impl Identified {
    /// Returns the identity of an item of the data.
    pub(crate) fn sent(&self, item: &Value) -> Identity {
        match (self, item) {
            (Self::Whole, item) => whole(item),
            (Self::By(parts), Value::Object(fields)) => {
                several(parts, |part, name| match fields.get(name) {
                    None => Identity::Key(Key::Absent),
                    Some(Value::Number(number)) if part.is_float => {
                        Identity::Key(float(as_float(number)))
                    }
                    Some(value) => whole(value),
                })
            }
            (Self::By(_), _) => Identity::Unique,
        }
    }

    /// Returns the identity of an item that is the result of an expression.
    pub(crate) fn made(&self, item: &dyn Val) -> Identity {
        match (self, item.as_indexer()) {
            (Self::Whole, _) => value(item),
            (Self::By(parts), Some(fields)) if item.get_type().kind() == Kind::Map => {
                several(parts, |_, name| {
                    let field = fields.get(CelMapKey::from(name).inner());
                    field.map_or(Identity::Key(Key::Absent), |field| value(field.as_ref()))
                })
            }
            (Self::By(_), _) => Identity::Unique,
        }
    }
}

fn several(parts: &[Field], of: impl Fn(&Field, &str) -> Identity) -> Identity {
    let mut keys = Vec::with_capacity(parts.len());
    for part in parts {
        match part.name.as_deref().map(|name| of(part, name)) {
            None => keys.push(Key::Absent),
            Some(Identity::Key(key)) => keys.push(key),
            Some(other) => return other,
        }
    }
    Identity::Key(Key::Several(keys))
}

fn whole(item: &Value) -> Identity {
    Identity::Key(match item {
        Value::Null => Key::Absent,
        Value::Bool(flag) => Key::Bool(*flag),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| float(as_float(number)), Key::Int),
        Value::String(text) => Key::Text(text.clone()),
        Value::Array(_) => return Identity::Unhashable("[]interface {}"),
        Value::Object(_) => return Identity::Unhashable("map[string]interface {}"),
    })
}

fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn float(number: f64) -> Key {
    // Positive and negative zero are equal.
    Key::Float(if number == 0.0 { 0 } else { number.to_bits() })
}

fn value(item: &dyn Val) -> Identity {
    if item.downcast_ref::<Unrepresentable>().is_some() {
        return Identity::Unique;
    }
    let key = match item.get_type().kind() {
        Kind::NullType => Some(Key::Null),
        Kind::Boolean => item
            .downcast_ref()
            .map(|it: &CelBool| Key::Bool(*it.inner())),
        Kind::Int => item.downcast_ref().map(|it: &CelInt| Key::Int(*it.inner())),
        Kind::UInt => item
            .downcast_ref()
            .map(|it: &CelUInt| Key::UInt(*it.inner())),
        Kind::Double => item.downcast_ref().map(|it: &CelDouble| float(*it.inner())),
        Kind::String => item
            .downcast_ref()
            .map(|it: &CelString| Key::Text(it.inner().to_owned())),
        Kind::Duration => item
            .downcast_ref()
            .map(|it: &CelDuration| Key::Duration(*it.inner())),
        Kind::Timestamp => item
            .downcast_ref()
            .map(|it: &CelTimestamp| Key::Moment(*it.inner())),
        Kind::Bytes => return Identity::Unhashable("[]uint8"),
        Kind::List => return Identity::Unhashable("[]interface {}"),
        Kind::Map => return Identity::Unhashable("map[string]interface {}"),
        _ => None,
    };
    key.map_or(Identity::Unique, Identity::Key)
}

/// Positions of items by key, as in a Go map.
#[derive(Default)]
pub(crate) struct Positions<'k>(HashMap<&'k Key, usize>);

impl<'k> Positions<'k> {
    /// Records the position of an item. If several have the same key, the last one counts.
    pub(crate) fn put(
        &mut self,
        identity: &'k Identity,
        position: usize,
    ) -> Result<(), ExecutionError> {
        match identity {
            Identity::Key(key) => {
                self.0.insert(key, position);
                Ok(())
            }
            Identity::Unique => Ok(()),
            Identity::Unhashable(go_type) => Err(unhashable(go_type)),
        }
    }

    /// Returns the position of the item with this key.
    pub(crate) fn get(&self, identity: &Identity) -> Result<Option<usize>, ExecutionError> {
        match identity {
            Identity::Key(key) => Ok(self.0.get(key).copied()),
            Identity::Unique => Ok(None),
            Identity::Unhashable(go_type) => Err(unhashable(go_type)),
        }
    }
}

fn unhashable(go_type: &str) -> ExecutionError {
    apiserver_panic::note(&format!("hash of unhashable type {go_type}"))
}
