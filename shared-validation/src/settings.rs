//! Policy settings: values that rules need besides the object. The policy provides them, so rules stay pure.

use serde_json::Value;

/// Section of the policy settings that rules read.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Name below `settings`. Several kinds may share a section.
    pub section: &'static str,
    /// Checks a section; returns a description of the problem if it is invalid.
    pub validate: fn(&Value) -> Result<(), String>,
}
