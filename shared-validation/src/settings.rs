//! Policy settings: values that rules need besides the object. The policy provides them, so rules stay pure.

use serde_json::Value;

use crate::policy::Action;

/// Section of the policy settings that rules read.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Name below `settings`. Several kinds may share a section.
    pub section: &'static str,
    /// Checks a section; returns a description of the problem if it is invalid.
    pub validate: fn(&Value) -> Result<(), String>,
    /// Returns the actions that a valid section sets for rules, each with the kind and the id of the rule. An entry
    /// for the same rule in the policy takes precedence.
    pub actions: fn(&Value) -> Vec<(&'static str, &'static str, Action)>,
}
