//! Last validated values, stored by the controller. With them, transition rules hold even if the webhook was
//! down.

use std::collections::{BTreeMap, BTreeSet};

use crd_validation::RatchetedViolation;
use crd_validation::json::pointer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Last validated values of all transition fields, stored in `status.lastValidated`.
///
/// # Guarantees
///
/// The size is bounded: one scalar for each transition field of the ruleset. No secrets are stored, because
/// kinds never declare a secret as transition field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastValidated {
    /// Validated `metadata.generation`.
    pub generation: i64,
    /// Values by dotted field path. A field that was absent has no entry.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Ratcheted errors: errors that a stricter rule reported for this generation as warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratcheted: Vec<RatchetedViolation>,
}

/// Maximum number of ratcheted errors that are stored for one object.
const MAX_RATCHETED: usize = 16;

impl LastValidated {
    /// Returns the values to store for an object that has just been found valid.
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

    /// Adds ratcheted errors.
    #[must_use]
    pub fn with_ratcheted(self, inherited: &[RatchetedViolation]) -> Self {
        let inherited = inherited.iter().take(MAX_RATCHETED).cloned().collect();
        Self {
            ratcheted: inherited,
            ..self
        }
    }

    /// Reads the last validated values from the status of an object.
    ///
    /// If the controller found the object invalid before it ever validated it successfully, there are no values
    /// to compare with. The result is then empty, and a corrected object is validated as if it were new.
    /// Returns `None` if the controller has not validated the object yet.
    #[must_use]
    pub fn from_status_of(object: &Value) -> Option<Self> {
        Self::from_status(object.get("status")?)
    }

    /// Reads the last validated values from a status.
    pub(crate) fn from_status(status: &Value) -> Option<Self> {
        let remembered = status
            .get("lastValidated")
            .and_then(|last_validated| Self::deserialize(last_validated).ok());
        remembered.or_else(|| is_found_invalid(status).then(Self::default))
    }

    /// Returns the last validated value of a field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(field)
    }

    /// Returns true if all transition fields of an object have their last validated values.
    pub(crate) fn agrees(&self, object: &Value, fields: &BTreeSet<String>) -> bool {
        let mut fields = fields.iter();
        fields.all(|name| pointer::get(object, name) == self.values.get(name))
    }

    /// Returns `object` with the last validated values of all transition fields. Transition rules compare with
    /// it.
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
    fn the_overlay_restores_last_validated_values_and_removes_fields_that_were_absent() {
        let fields = ["spec.engine", "spec.storage.sizeGib", "spec.name"]
            .map(String::from)
            .into();
        let last_validated = LastValidated::from_object(
            &json!({"metadata": {"generation": 3}, "spec": {"engine": "postgres", "storage": {"sizeGib": 100}}}),
            &fields,
        );
        assert_eq!(last_validated.generation, 3);
        let stored =
            json!({"spec": {"engine": "postgres", "storage": {"sizeGib": 100}, "other": 1}});
        assert!(last_validated.agrees(&stored, &fields));
        let edited = json!({"spec": {"engine": "mysql", "name": "x", "other": 1}});
        assert!(!last_validated.agrees(&edited, &fields));
        assert_eq!(
            last_validated.overlay(&edited, &fields),
            json!({"spec": {"engine": "postgres", "storage": {"sizeGib": 100}, "other": 1}})
        );
    }
}
