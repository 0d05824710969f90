//! Sources of data that an administrator lets objects use.

use serde_json::{Value, json};

/// Sources of data that objects may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePolicy {
    /// Sources that belong to no object of the cluster.
    pub unowned: UnownedSources,
    /// If true, the controller may read Namespaces, in which the owners of sources allow their use.
    pub reads_namespaces: bool,
}

impl Default for SourcePolicy {
    fn default() -> Self {
        Self {
            unowned: UnownedSources::Allow,
            reads_namespaces: true,
        }
    }
}

/// Decision about sources of data whose tags name no object of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnownedSources {
    /// Objects of every namespace may use them.
    Allow,
    /// No object may use them.
    Deny,
}

/// Returns the RBAC rule to read and watch Namespaces.
pub(crate) fn rbac_rule() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]})
}
