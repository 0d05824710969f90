//! Policy settings: values that rules need besides the object. The policy provides them, so rules stay pure.

use serde_json::Value;

use crate::policy::Action;

/// Section of the policy settings that rules read.
///
/// ```
/// use lockstep_shared_validation::{Action, Settings};
///
/// /// Section `settings.disks`, such as `{maxSizeGib: 100}`.
/// const DISKS: Settings = Settings {
///     section: "disks",
///     validate: |section| match section["maxSizeGib"].as_u64() {
///         Some(1..) => Ok(()),
///         _ => Err("`maxSizeGib` must be a positive number".to_owned()),
///     },
///     actions: |_| Vec::new(),
/// };
/// assert!((DISKS.validate)(&serde_json::json!({"maxSizeGib": 0})).is_err());
/// ```
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
