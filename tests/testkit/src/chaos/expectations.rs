//! Expectations of an author: what the external system and the cluster have for an object.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::Value;

type RandomSpec = Box<dyn Fn(&mut Rng, &str) -> Value + Send + Sync>;
type Invariant = Box<dyn Fn(&ActualState) -> Result<(), BrokenInvariant> + Send + Sync>;
type Of<T> = Box<dyn Fn(&Value) -> T + Send + Sync>;
pub(crate) type RandomRelated = Box<dyn Fn(&mut Rng, &Value) -> Vec<Value> + Send + Sync>;

/// Everything that exists in one trial, for a property of the author.
#[derive(Clone, Debug, Default)]
pub struct ActualState {
    /// Objects of the kind.
    pub objects: Vec<Value>,
    /// Owned objects, also those without an owner.
    pub owned: Vec<Value>,
    /// Objects to which the objects refer.
    pub related: Vec<Value>,
    /// Resources in the external system, by their ids.
    pub resources: BTreeMap<String, Value>,
}

/// Violation of a property of the author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenInvariant {
    /// Name of the object that it concerns; empty if it concerns several.
    pub object: String,
    /// State that was found.
    pub found: String,
}

/// Expectations of an author. Each is a function of an object.
pub(crate) struct Expectations {
    /// Random valid spec of the object with this name.
    pub(crate) spec: RandomSpec,
    /// Resources in the external system.
    pub(crate) external: Of<Vec<Value>>,
    /// Owned objects.
    pub(crate) owned: Of<Vec<Value>>,
    /// Objects to which an object refers, with random contents. None: there are no such objects.
    pub(crate) related: Option<RandomRelated>,
    /// Status fields and conditions.
    pub(crate) status: Of<Value>,
    /// Further properties of the author.
    pub(crate) invariants: Vec<Invariant>,
    /// Secret values that belong to no status, Event or owned object but Secrets.
    pub(crate) secrets: Of<Vec<String>>,
}

/// Returns true if `found` has everything that `expected` has: all fields of objects, and items of lists at the same place
/// or, if they have a `type`, of the same type.
pub(crate) fn contains(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected.iter().all(|(name, value)| {
            let found = found.get(name).unwrap_or(&Value::Null);
            contains(found, value)
        }),
        (Value::Array(found), Value::Array(expected)) => {
            if expected.iter().any(|item| item["type"].is_string()) {
                let has = |item: &Value| found.iter().any(|it| contains(it, item));
                return expected.iter().all(has);
            }
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(it, item)| contains(it, item))
        }
        (found, expected) => found == expected,
    }
}

/// Returns true if a resource of another owner still has the content that was set. What the system adds may change.
pub(crate) fn is_unchanged(current: Option<&Value>, content: &Value) -> bool {
    current.is_some_and(|current| contains(current, content))
}

/// Removes one value that contains `expected`, and returns its place in the list before.
pub(crate) fn take_match<T>(
    left: &mut Vec<T>,
    expected: &Value,
    content: impl Fn(&T) -> &Value,
) -> Option<T> {
    let at = left.iter().position(|it| contains(content(it), expected))?;
    Some(left.remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn additional_fields_are_allowed_and_additional_items_are_not() {
        let found = json!({"a": 1, "b": [{"x": 1, "y": 2}], "c": null});
        assert!(contains(&found, &json!({"b": [{"x": 1}], "d": null})));
        assert!(!contains(&found, &json!({"b": []})));
        assert!(!contains(&found, &json!({"a": 2})));
    }

    #[test]
    fn items_with_a_type_are_found_by_it() {
        let found = json!([{"type": "Valid"}, {"type": "Ready", "status": "True"}]);
        assert!(contains(
            &found,
            &json!([{"type": "Ready", "status": "True"}])
        ));
        assert!(!contains(
            &found,
            &json!([{"type": "Ready", "status": "False"}])
        ));
    }

    #[test]
    fn the_fields_of_the_system_do_not_change_a_resource_of_another_owner() {
        let content = json!({"name": "delta", "owner": "1"});
        let stored = |owner: &str| json!({"name": "delta", "owner": owner, "state": "available"});
        assert!(is_unchanged(Some(&stored("1")), &content));
        assert!(!is_unchanged(Some(&stored("2")), &content));
        assert!(!is_unchanged(None, &content));
    }
}
