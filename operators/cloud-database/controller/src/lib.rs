//! CloudDatabase: reconciliation of an AWS RDS instance with the desired state of its object.

#![allow(clippy::doc_markdown, reason = "product names are no code")]

mod account;
mod applied_values;
mod aws_metrics;
mod call_error;
mod certificate;
mod circumstances;
mod creation;
mod credentials;
mod deletion_policy;
mod descriptions;
mod drift;
mod finalization;
mod instance_status;
mod known_passwords;
mod location;
mod modification;
mod modify;
mod preconditions;
mod rds_client;
mod recent;
mod reconciler;
mod recorded_instance;
mod replacement;
mod step_error;
mod sufficient;
mod sync;
mod tags;

pub use crate::aws_metrics::{AWS_REQUESTS, AWS_REQUESTS_HELP, AwsRequestLabels, AwsRequests};
pub use crate::certificate::{
    CERTIFICATE_EXPIRY, CERTIFICATE_EXPIRY_HELP, CertificateExpiry, CertificateLabels,
};
pub use crate::rds_client::RdsClient;
pub use reconciler::{CloudDatabaseReconciler, RdsConfig};

/// Returns the RBAC rules that the operator needs besides those for its own kind: it reads the Secret of an
/// object, and watches it.
#[must_use]
pub fn rbac_rules() -> Vec<serde_json::Value> {
    vec![
        serde_json::json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}),
    ]
}
