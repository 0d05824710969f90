//! What the loop remembers of the last object that stood, so that transitions hold without the gate.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::go;
use crate::pointer;
use crate::verdict::Violation;

/// The last accepted value of every field that a transition rule reads: `status.accepted`.
///
/// # Guarantees
///
/// Bounded: one scalar for each field of the ruleset's transition fields. Never a secret: a kind
/// names no secret field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastValidated {
    /// The `metadata.generation` that was accepted.
    pub generation: i64,
    /// The values by dotted field name; a field that was absent is absent here.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// The errors in spite of which it was accepted: a stricter rule came later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratcheted: Vec<RatchetedViolation>,
}

/// An error that an object had when it was accepted. It stays a warning as long as nothing that it
/// depends on changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RatchetedViolation {
    /// The rule's id.
    pub rule: String,
    /// Where it is broken.
    pub at: String,
    /// A fingerprint of what the error depends on.
    pub inputs: String,
}

impl RatchetedViolation {
    pub(crate) fn of(violation: &Violation) -> Option<Self> {
        Some(Self {
            rule: violation.rule.clone(),
            at: violation.at.as_str().to_owned(),
            inputs: format!("{:016x}", violation.inputs?),
        })
    }
}

/// How many inherited errors are remembered of one object.
const MAX_INHERITED: usize = 16;

/// A fingerprint of values. It is stored, so it must never change.
pub(crate) fn fingerprint<'a>(values: impl IntoIterator<Item = &'a Value>) -> u64 {
    let mut hasher = fnv::FnvHasher::default();
    for value in values {
        hasher.write(go::json(value).as_bytes());
        hasher.write_u8(0);
    }
    hasher.finish()
}

impl LastValidated {
    /// What is to be remembered of an object that has just been found valid.
    #[must_use]
    pub fn from_object(object: &Value, fields: &BTreeSet<String>) -> Self {
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let values = fields
            .iter()
            .filter_map(|name| Some((name.clone(), pointer::get(object, name)?.clone())))
            .collect();
        Self {
            generation,
            values,
            ratcheted: Vec::new(),
        }
    }

    /// The same, in spite of errors that were there before.
    #[must_use]
    pub fn with_ratcheted(self, inherited: &[RatchetedViolation]) -> Self {
        let inherited = inherited.iter().take(MAX_INHERITED).cloned().collect();
        Self {
            ratcheted: inherited,
            ..self
        }
    }

    /// What an object's status remembers.
    ///
    /// An object that the loop has found invalid without ever having accepted it has nothing to be
    /// compared with: what comes back is empty, and its correction is judged as new. Nothing comes
    /// back where the loop has said nothing yet.
    #[must_use]
    pub fn from_status_of(object: &Value) -> Option<Self> {
        Self::from_status(object.get("status")?)
    }

    /// The same, of the status alone.
    pub(crate) fn from_status(status: &Value) -> Option<Self> {
        let remembered = status
            .get("accepted")
            .and_then(|accepted| Self::deserialize(accepted).ok());
        remembered.or_else(|| is_found_invalid(status).then(Self::default))
    }

    /// The accepted value of a field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(field)
    }

    /// Whether every transition field of an object is as it was accepted.
    pub(crate) fn agrees(&self, object: &Value, fields: &BTreeSet<String>) -> bool {
        let mut fields = fields.iter();
        fields.all(|name| pointer::get(object, name) == self.values.get(name))
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
        let accepted = LastValidated::from_object(
            &json!({"metadata": {"generation": 3}, "spec": {"engine": "postgres", "storage": {"sizeGib": 100}}}),
            &fields,
        );
        assert_eq!(accepted.generation, 3);
        let stored =
            json!({"spec": {"engine": "postgres", "storage": {"sizeGib": 100}, "other": 1}});
        assert!(accepted.agrees(&stored, &fields));
        let edited = json!({"spec": {"engine": "mysql", "name": "x", "other": 1}});
        assert!(!accepted.agrees(&edited, &fields));
        assert_eq!(
            accepted.overlay(&edited, &fields),
            json!({"spec": {"engine": "postgres", "storage": {"sizeGib": 100}, "other": 1}})
        );
    }
}
