//! Last validated values, stored by the controller. With them, transition rules hold even if the webhook was
//! down.

use std::collections::{BTreeMap, BTreeSet};

use crd_validation::RatchetedViolations;
use crd_validation::json::pointer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Last validated values of all transition fields, stored in `status.lastValidated`.
///
/// # Guarantees
///
/// The size is bounded: one scalar for each transition field of the ruleset, and [`RatchetedViolations`]. No secrets are stored, because
/// kinds never declare a secret as transition field.
///
/// ```
/// use lockstep_shared_validation::LastValidated;
/// use serde_json::json;
///
/// let fields = ["spec.engine".to_owned()].into();
/// let object = json!({"metadata": {"generation": 3}, "spec": {"engine": "mysql", "size": 20}});
/// let values = LastValidated::from_object(&object, &fields);
/// assert_eq!(values.get("spec.engine"), Some(&json!("mysql")));
/// assert_eq!(values.get("spec.size"), None);
///
/// let stored = json!({"status": {"lastValidated": values}});
/// assert_eq!(LastValidated::from_status_of(&stored), Some(values));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastValidated {
    /// Validated `metadata.generation`; 0 if the object has never been valid.
    pub generation: i64,
    /// Values by dotted field path. A field that was absent has the value `{}`, which no scalar has. A field without
    /// an entry was not a transition field of the release that validated the object.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Ratcheted errors: errors that a stricter rule reported for this generation as warnings.
    #[serde(flatten)]
    pub ratcheted: RatchetedViolations,
}

/// Maximum number of transition fields of a kind, which is `maxProperties` of the stored values.
pub(crate) const MAX_FIELDS: usize = 32;

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
            .map(|name| {
                let value = pointer::get(object, name).cloned();
                (name.clone(), value.unwrap_or_else(absent))
            })
            .collect();
        Self {
            generation,
            values,
            ratcheted: RatchetedViolations::default(),
        }
    }

    /// Sets the ratcheted errors.
    #[must_use]
    pub fn with_ratcheted(self, ratcheted: &RatchetedViolations) -> Self {
        Self {
            ratcheted: ratcheted.clone(),
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

    /// Returns the last validated value of a field, or `None` if the field was absent or is not known.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(field).filter(|value| **value != absent())
    }

    /// Returns false if the controller found the object invalid before it ever validated it successfully.
    pub(crate) fn has_been_valid(&self) -> bool {
        self.generation != 0
    }

    /// Returns true if the last validated state of a field is known, even if it was absent. Of an object that has
    /// never been valid, every field counts as absent.
    fn knows(&self, field: &str) -> bool {
        !self.has_been_valid() || self.values.contains_key(field)
    }

    /// Returns true if the last validated state of all of these fields is known.
    #[must_use]
    pub fn is_complete(&self, fields: &BTreeSet<String>) -> bool {
        fields.iter().all(|name| self.knows(name))
    }

    /// Returns true if a field has its last validated value. This includes a field whose last validated value is not
    /// known, because a release that compares the field for the first time has only the stored object.
    pub(crate) fn has(&self, field: &str, value: Option<&Value>) -> bool {
        !self.knows(field) || self.get(field) == value
    }

    /// Returns true if all transition fields of an object have their last validated values.
    pub(crate) fn agrees(&self, object: &Value, fields: &BTreeSet<String>) -> bool {
        let mut fields = fields.iter();
        fields.all(|name| self.has(name, pointer::get(object, name)))
    }

    /// Returns `object` with the last validated values of all transition fields. Transition rules compare with
    /// it.
    pub(crate) fn overlay(&self, object: &Value, fields: &BTreeSet<String>) -> Value {
        let mut old = object.clone();
        for name in fields.iter().filter(|name| self.knows(name)) {
            match self.get(name) {
                Some(value) => pointer::set(&mut old, name, value.clone()),
                None => pointer::remove(&mut old, name),
            }
        }
        old
    }
}

/// Stored value of a field that was absent.
fn absent() -> Value {
    Value::Object(Map::new())
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
        // Also if the present object has no members there.
        let malformed = json!({"spec": {"engine": "mysql", "storage": [], "other": 1}});
        let restored = last_validated.overlay(&malformed, &fields);
        assert_eq!(restored["spec"]["storage"], json!({"sizeGib": 100}));
    }

    #[test]
    fn a_field_that_was_no_transition_field_when_the_object_was_validated_counts_as_stored() {
        let one: BTreeSet<String> = ["spec.engine".to_owned()].into();
        let both = ["spec.engine".to_owned(), "spec.port".to_owned()].into();
        let stored = json!({"metadata": {"generation": 1}, "spec": {"engine": "a", "port": 1}});
        let last_validated = LastValidated::from_object(&stored, &one);
        assert!(last_validated.agrees(&stored, &both));
        let edited = json!({"spec": {"engine": "b", "port": 2}});
        assert_eq!(
            last_validated.overlay(&edited, &both)["spec"],
            json!({"engine": "a", "port": 2})
        );
        // An object that has never been valid has no value to compare with.
        let never = LastValidated::default();
        assert!(!never.agrees(&stored, &both));
        assert_eq!(never.overlay(&edited, &both)["spec"], json!({}));
    }

    #[test]
    fn a_field_that_was_absent_has_a_stored_value_that_is_read_as_absent() {
        let fields: BTreeSet<String> = ["spec.kmsKey".to_owned()].into();
        let without = json!({"metadata": {"generation": 1}, "spec": {}});
        let last_validated = LastValidated::from_object(&without, &fields);
        assert_eq!(last_validated.values["spec.kmsKey"], json!({}));
        assert_eq!(last_validated.get("spec.kmsKey"), None);
        assert!(last_validated.agrees(&without, &fields));
        assert!(!last_validated.agrees(&json!({"spec": {"kmsKey": "alias/a"}}), &fields));
    }
}
