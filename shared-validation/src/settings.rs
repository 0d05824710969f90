//! What rules may need to know beyond the object: told by a policy, so that they stay pure.

use serde_json::Value;

/// A section of a policy that rules read.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Its name below `settings`. Kinds may share one.
    pub section: &'static str,
    /// Whether it can be read; what is wrong with it, if not.
    pub validate: fn(&Value) -> Result<(), String>,
}
