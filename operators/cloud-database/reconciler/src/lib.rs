//! CloudDatabase: reconciliation of an AWS RDS instance with the desired state of its object.

#![allow(clippy::doc_markdown, reason = "product names are no code")]

mod account;
mod asked;
mod call_error;
mod creation;
mod credentials;
mod deletion;
mod drift;
mod finalization;
mod instances;
mod location;
mod modification;
mod reconciler;
mod record;
mod standing;
mod tags;

pub use instances::RdsClient;
pub use reconciler::{CloudDatabaseReconciler, RdsConfig};

/// Returns the RBAC rules that the operator needs besides those for its own kind: it reads the Secret of an object.
#[must_use]
pub fn rbac_rules() -> Vec<serde_json::Value> {
    vec![serde_json::json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})]
}
