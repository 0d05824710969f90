//! What the components of a pipeline are called in the Vector that runs them.
//!
//! They have the names that kaasops' operator gives them: by these, Vector finds what it keeps on the disk, and tells
//! its metrics.

use serde_json::Value;

/// What stands before the names of a pipeline's components.
pub(crate) struct Prefix(String);

impl Prefix {
    pub(crate) fn new(namespace: Option<&str>, name: &str, is_skipped: bool) -> Self {
        let parts = [namespace, Some(name)].into_iter().flatten();
        let parts = parts.filter(|part| !part.is_empty() && !is_skipped);
        Self(parts.map(|part| format!("{part}-")).collect())
    }

    /// That of a pipeline as stored.
    pub(crate) fn of(pipeline: &Value) -> Self {
        let metadata = &pipeline["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let is_skipped = pipeline["spec"]["skipPrefix"] == true;
        Self::new(metadata["namespace"].as_str(), name, is_skipped)
    }

    pub(crate) fn before(&self, id: &str) -> String {
        format!("{}{id}", self.0)
    }
}
