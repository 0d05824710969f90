//! Preview of what a change of a workload does to its Pods.

use serde_json::Value;

/// Effect of a change of a workload, as far as it follows from the workload alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePreview {
    /// If true, the Pods are replaced. If false, Vector reloads its configuration.
    pub replaces_pods: bool,
    /// Differences, in the words of the status.
    pub reasons: Vec<String>,
}

/// Function that compares the old and the new object of a kind. It reads nothing else. None if the Pods are not concerned.
pub type PreviewChange = fn(kind: &str, old: &Value, new: &Value) -> Option<ChangePreview>;
