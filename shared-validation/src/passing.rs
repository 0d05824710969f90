//! What passes with nothing to say: what has to be looked at besides the rules.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use crate::accepted::Accepted;
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
    let accepted = old.get(["status", "accepted"]);
    match accepted.and_then(|accepted| Accepted::deserialize(accepted).ok()) {
        Some(accepted) => {
            let mut names = transition_fields.iter();
            accepted.inherited.is_empty()
                && names.all(|name| {
                    let value = old.get(name.split('.')).map(Tree::to_value);
                    accepted.values.get(name) == value.as_ref()
                })
        }
        None => {
            let conditions = old.get(["status", "conditions"]).map(Tree::to_value);
            Accepted::of_status(&json!({ "conditions": conditions })).is_none()
        }
    }
}

fn has_all(object: &Tree<'_>, defaults: &[DynamicDefault]) -> bool {
    let mut fields = defaults.iter().map(|default| default.field);
    fields.all(|name| object.get(name.split('.')).is_some())
}
