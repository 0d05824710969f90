//! Sources of data that an administrator lets objects use.

use serde_json::{Value, json};

use crate::origin::allowed_sources::SourcesByNamespace;

/// Sources of data that objects may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePolicy {
    /// Sources that no object owns.
    pub unowned: UnownedSources,
    /// If true, the controller may read Namespaces, in which administrators and the owners of sources allow their use.
    pub reads_namespaces: bool,
    /// Sources that a controller which may not read Namespaces lets objects use.
    pub allowed: SourcesByNamespace,
}

impl Default for SourcePolicy {
    fn default() -> Self {
        Self {
            unowned: UnownedSources::default(),
            reads_namespaces: true,
            allowed: SourcesByNamespace::default(),
        }
    }
}

/// Decision about sources of data whose tags name no object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnownedSources {
    /// Objects of every namespace may use them.
    Allow,
    /// Objects may use those that an administrator has listed for their namespace.
    #[default]
    Deny,
}

/// Returns the RBAC rule to read and watch Namespaces.
pub(crate) fn rbac_rule() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]})
}
