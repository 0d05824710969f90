//! What the loop remembers of the last object that stood, so that transitions hold without the gate.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pointer;

/// The last accepted value of every field that a transition rule reads: `status.accepted`.
///
/// # Guarantees
///
/// Bounded: one scalar for each field of the ruleset's transition fields. Never a secret: a kind
/// names no secret field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The `metadata.generation` that was accepted.
    pub generation: i64,
    /// The values by dotted field name; a field that was absent is absent here.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
}

impl Accepted {
    /// What is to be remembered of an object that has just been found valid.
    #[must_use]
    pub fn of(object: &Value, fields: &BTreeSet<String>) -> Self {
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let values = fields
            .iter()
            .filter_map(|name| Some((name.clone(), pointer::get(object, name)?.clone())))
            .collect();
        Self { generation, values }
    }

    /// What an object's status remembers.
    ///
    /// An object that the loop has found invalid without ever having accepted it has nothing to be
    /// compared with: what comes back is empty, and its correction is judged as new. Nothing comes
    /// back where the loop has said nothing yet.
    #[must_use]
    pub fn read(object: &Value) -> Option<Self> {
        let status = object.get("status")?;
        let remembered = status
            .get("accepted")
            .and_then(|accepted| Self::deserialize(accepted).ok());
        remembered.or_else(|| is_found_invalid(status).then(Self::default))
    }

    /// The accepted value of a field.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&Value> {
        self.values.get(field)
    }

    /// `object` with every transition field as it was accepted: what transitions are judged against.
    pub(crate) fn overlay(&self, object: &Value, fields: &BTreeSet<String>) -> Value {
        let mut old = object.clone();
        for name in fields {
            match self.values.get(name) {
                Some(value) => pointer::set(&mut old, name, value.clone()),
                None => pointer::remove(&mut old, name),
            }
        }
        old
    }
}

fn is_found_invalid(status: &Value) -> bool {
    let conditions = status
        .get("conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    conditions
        .into_iter()
        .any(|condition| condition["type"] == "Valid" && condition["status"] == "False")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_overlay_restores_what_was_accepted_and_removes_what_was_absent() {
        let fields = ["spec.engine", "spec.storage.sizeGib", "spec.name"]
            .map(String::from)
            .into();
        let accepted = Accepted::of(
            &json!({"metadata": {"generation": 3}, "spec": {"engine": "postgres", "storage": {"sizeGib": 100}}}),
            &fields,
        );
        assert_eq!(accepted.generation, 3);
        let edited = json!({"spec": {"engine": "mysql", "name": "x", "other": 1}});
        assert_eq!(
            accepted.overlay(&edited, &fields),
            json!({"spec": {"engine": "postgres", "storage": {"sizeGib": 100}, "other": 1}})
        );
    }
}
