//! Fast path: conditions besides the rules under which an object is valid without defaults or warnings.

use std::collections::BTreeSet;

use crd_validation::json::Tree;
use serde::Deserialize;
use serde_json::json;

use crate::defaults::DynamicDefault;
use crate::last_validated::LastValidated;
use crate::probe;

/// Returns true if an object is not an admission probe and no dynamic default is missing. Its static defaults must be filled.
pub(crate) fn is_complete(
    object: &Tree<'_>,
    old: Option<&Tree<'_>>,
    defaults: &[DynamicDefault],
) -> bool {
    let mark = ["metadata", "annotations", probe::ANNOTATION];
    !object.has(mark) && has_all(object, old, defaults)
}

/// Returns true if an object has all dynamic defaults and its transition fields have their last validated
/// values. Then the API server has evaluated the transition rules against the same values that this crate would
/// use.
pub(crate) fn is_as_accepted(
    old: &Tree<'_>,
    defaults: &[DynamicDefault],
    transition_fields: &BTreeSet<String>,
) -> bool {
    if !has_all(old, None, defaults) {
        return false;
    }
    match old
        .get(["status", "lastValidated"])
        .map(LastValidated::deserialize)
    {
        Some(Ok(last_validated)) => {
            let mut names = transition_fields.iter();
            last_validated.ratcheted.is_empty()
                && names.all(|name| {
                    let value = old.get(name.split('.')).map(Tree::to_value);
                    last_validated.has(name, value.as_ref())
                })
        }
        // `LastValidated::from_status_of` may parse what fails to deserialize here.
        Some(Err(_)) => false,
        None => {
            let conditions = old.get(["status", "conditions"]).map(Tree::to_value);
            LastValidated::from_status(&json!({ "conditions": conditions })).is_none()
        }
    }
}

/// Returns true if an object has each field that has a dynamic default: neither the earlier object nor the other fields give a
/// value for those that it does not have.
fn has_all(object: &Tree<'_>, old: Option<&Tree<'_>>, defaults: &[DynamicDefault]) -> bool {
    let lacks = |object: &Tree<'_>, name: &str| object.get(name.split('.')).is_none();
    let missing = defaults.iter().filter(|it| lacks(object, it.field));
    let mut missing = missing.peekable();
    if missing.peek().is_none() {
        return true;
    }
    let value = object.to_value();
    missing.all(|default| {
        old.is_none_or(|old| lacks(old, default.field)) && (default.value)(&value).is_none()
    })
}

#[cfg(test)]
mod tests {
    use crd_validation::json::RawObject;

    use super::*;

    #[test]
    fn a_field_whose_default_depends_on_others_is_missing_only_if_they_give_a_value() {
        let defaults = [DynamicDefault {
            field: "spec.port",
            value: |object| (object["spec"]["adopt"] != true).then(|| 5432.into()),
        }];
        let complete = |object: &str, old: Option<&str>| {
            let object: RawObject<'_> = serde_json::from_str(object).expect("JSON");
            let old: Option<RawObject<'_>> = old.map(|it| serde_json::from_str(it).expect("JSON"));
            let old = old.as_ref().map(RawObject::tree);
            is_complete(object.tree(), old, &defaults)
        };
        assert!(complete(r#"{"spec": {"port": 1}}"#, None));
        assert!(!complete(r#"{"spec": {}}"#, None));
        assert!(complete(r#"{"spec": {"adopt": true}}"#, None));
        let old = r#"{"spec": {"adopt": true}}"#;
        assert!(complete(r#"{"spec": {"adopt": true}}"#, Some(old)));
        // The old value is kept.
        let old = r#"{"spec": {"adopt": true, "port": 1}}"#;
        assert!(!complete(r#"{"spec": {"adopt": true}}"#, Some(old)));
    }

    #[test]
    fn an_old_object_is_used_for_transitions_only_if_it_has_the_last_validated_values() {
        let fields = ["spec.size".to_owned()].into();
        let is_unchanged = |status: &str| {
            let text = format!(r#"{{"spec": {{"size": 100}}, "status": {status}}}"#);
            let old: RawObject<'_> = serde_json::from_str(&text).expect("JSON");
            is_as_accepted(old.tree(), &[], &fields)
        };
        let invalid = r#"{"conditions": [{"type": "Valid", "status": "False"}]}"#;
        for (status, expected) in [
            ("null", true),
            ("{}", true),
            (invalid, false),
            (
                r#"{"lastValidated": {"generation": 1, "values": {"spec.size": 100}}}"#,
                true,
            ),
            (
                r#"{"lastValidated": {"generation": 1, "values": {"spec.size": 100}, "ratcheted": []}}"#,
                true,
            ),
            (
                r#"{"lastValidated": {"generation": 1, "values": {"spec.size": 50}}}"#,
                false,
            ),
            (
                r#"{"lastValidated": {"generation": 1, "values": {"spec.size": {}}}}"#,
                false,
            ),
            // The field was no transition field when the object was validated.
            (r#"{"lastValidated": {"generation": 1}}"#, true),
            (r#"{"lastValidated": {"generation": 0}}"#, false),
            // Unreadable, or read differently by the full validation, which must decide.
            (
                r#"{"lastValidated": {"values": {"spec.size": 100}}}"#,
                false,
            ),
            (
                r#"{"lastValidated": {"generation": 1, "generation": 1, "values": {"spec.size": 50}}}"#,
                false,
            ),
            (
                r#"{"lastValidated": {"generation": 1, "values": {"spec.size": 100},
                "ratcheted": [{"rule": "a", "at": "spec", "inputs": "1"}]}}"#,
                false,
            ),
        ] {
            assert_eq!(is_unchanged(status), expected, "{status}");
        }
    }
}
