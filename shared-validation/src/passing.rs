//! What passes with nothing to say: what has to be looked at besides the rules.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use crate::accepted::LastValidated;
use crate::canary;
use crate::defaults::DynamicDefault;
use crate::written::Tree;

/// Whether an object is no canary and lacks no default that the API server cannot fill.
pub(crate) fn is_complete(object: &Tree<'_>, defaults: &[DynamicDefault]) -> bool {
    let mark = ["metadata", "annotations", canary::ANNOTATION];
    !object.has(mark) && has_all(object, defaults)
}

/// Whether an object has every default, and is what was last accepted of it as far as transitions are
/// concerned: then the API server has judged them against the same as would be done here.
pub(crate) fn is_as_accepted(
    old: &Tree<'_>,
    defaults: &[DynamicDefault],
    transition_fields: &BTreeSet<String>,
) -> bool {
    if !has_all(old, defaults) {
        return false;
    }
    match old
        .get(["status", "accepted"])
        .map(LastValidated::deserialize)
    {
        Some(Ok(accepted)) => {
            let mut names = transition_fields.iter();
            accepted.ratcheted.is_empty()
                && names.all(|name| {
                    let value = old.get(name.split('.')).map(Tree::to_value);
                    accepted.values.get(name) == value.as_ref()
                })
        }
        // What cannot be read here may be read otherwise.
        Some(Err(_)) => false,
        None => {
            let conditions = old.get(["status", "conditions"]).map(Tree::to_value);
            LastValidated::from_status(&json!({ "conditions": conditions })).is_none()
        }
    }
}

fn has_all(object: &Tree<'_>, defaults: &[DynamicDefault]) -> bool {
    let mut fields = defaults.iter().map(|default| default.field);
    fields.all(|name| object.get(name.split('.')).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::RawObject;

    #[test]
    fn only_what_was_accepted_as_it_stands_is_taken_for_it() {
        let fields = ["spec.size".to_owned()].into();
        let stands = |status: &str| {
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
                r#"{"accepted": {"generation": 1, "values": {"spec.size": 100}}}"#,
                true,
            ),
            (
                r#"{"accepted": {"generation": 1, "values": {"spec.size": 100}, "inherited": []}}"#,
                true,
            ),
            (
                r#"{"accepted": {"generation": 1, "values": {"spec.size": 50}}}"#,
                false,
            ),
            (r#"{"accepted": {"generation": 1}}"#, false),
            // Unreadable, or read otherwise than here: for the judgement to tell.
            (r#"{"accepted": {"values": {"spec.size": 100}}}"#, false),
            (
                r#"{"accepted": {"generation": 1, "generation": 1, "values": {"spec.size": 50}}}"#,
                false,
            ),
            (
                r#"{"accepted": {"generation": 1, "values": {"spec.size": 100},
                "inherited": [{"rule": "a", "at": "spec", "inputs": "1"}]}}"#,
                false,
            ),
        ] {
            assert_eq!(stands(status), expected, "{status}");
        }
    }
}
