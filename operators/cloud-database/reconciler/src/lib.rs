//! CloudDatabase: the step that keeps an AWS RDS instance as the object says.

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

/// What the operator may do beyond its own kind, as RBAC rules: get the Secret that an object names.
#[must_use]
pub fn rbac_rules() -> Vec<serde_json::Value> {
    vec![serde_json::json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})]
}
