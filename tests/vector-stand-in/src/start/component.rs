//! Component of a configuration.

use serde_json::Value;

/// Component of a configuration.
pub(crate) struct Component<'a> {
    /// `sources`, `transforms` or `sinks`.
    pub(crate) block: &'static str,
    pub(crate) id: &'a str,
    pub(crate) options: &'a Value,
}

impl Component<'_> {
    pub(crate) fn type_(&self) -> &str {
        self.options["type"].as_str().unwrap_or_default()
    }
}
