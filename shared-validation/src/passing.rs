//! What passes with nothing to say: what has to be looked at besides the rules.

use std::collections::BTreeSet;

use serde_json::json;

use crate::accepted::Accepted;
use crate::canary;
use crate::defaults::DynamicDefault;
use crate::written::Tree;

/// Places in an object, compiled once.
pub(crate) struct Passing {
    /// Fields that have defaults which depend on other fields.
    filled: Vec<&'static str>,
    /// Fields that the loop remembers.
    remembered: Vec<String>,
}

impl Passing {
    pub(crate) fn new(defaults: &[DynamicDefault], transition_fields: &BTreeSet<String>) -> Self {
        Self {
            filled: defaults.iter().map(|default| default.field).collect(),
            remembered: transition_fields.iter().cloned().collect(),
        }
    }

    /// Whether an object is no canary and lacks no default that the API server cannot fill.
    pub(crate) fn is_complete(&self, object: &Tree<'_>) -> bool {
        let mut filled = self.filled.iter();
        let mark = ["metadata", "annotations", canary::ANNOTATION];
        !object.has(mark) && filled.all(|name| object.get(name.split('.')).is_some())
    }

    /// Whether an object has every default, and is what was last accepted of it as far as transitions are
    /// concerned: then the API server has judged them against the same as would be done here.
    pub(crate) fn is_as_accepted(&self, old: &Tree<'_>) -> bool {
        let mut filled = self.filled.iter();
        if !filled.all(|name| old.get(name.split('.')).is_some()) {
            return false;
        }
        let Some(accepted) = old.get(["status", "accepted"]) else {
            let conditions = old.get(["status", "conditions"]).map(Tree::to_value);
            return Accepted::of_status(&json!({ "conditions": conditions })).is_none();
        };
        let Some(values) = remembered(accepted) else {
            return false;
        };
        let mut names = self.remembered.iter();
        names.all(|name| values.field(name) == old.get(name.split('.')))
    }
}

/// The values in what the loop remembers, if that is the plain case: nothing was wrong with them.
fn remembered<'t, 'a>(accepted: &'t Tree<'a>) -> Option<&'t Tree<'a>> {
    match accepted.field("generation") {
        Some(Tree::Number(generation)) if generation.as_i64().is_some() => {}
        _ => return None,
    }
    if accepted.field("inherited").is_some() {
        return None;
    }
    accepted
        .field("values")
        .filter(|values| matches!(values, Tree::Object(_)))
}
