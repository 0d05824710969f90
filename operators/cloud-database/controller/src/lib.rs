//! CloudDatabase: reconciliation of an AWS RDS instance with the desired state of its object.

#![allow(clippy::doc_markdown, reason = "product names are no code")]

mod aws;
mod clock;
mod credentials;
mod deletion;
#[cfg(test)]
mod exploration;
mod instance;
mod offers;
mod origin;
mod quota;
mod reconciler;
mod settings;
#[cfg(test)]
mod tests;

pub use crate::aws::access_check::{AccessCheck, AccessError};
pub use crate::aws::iam_policy::{IamPolicyScope, iam_policy, partition_of};
pub use crate::aws::metrics::{AWS_REQUESTS, AWS_REQUESTS_HELP, AwsRequestLabels, AwsRequests};
pub use crate::aws::rate_limits::RateLimits;
pub use crate::aws::rds_client::RdsClient;
pub use crate::aws::rds_clients::RdsClients;
pub use crate::aws::rds_events::RdsEvents;
pub use crate::aws::rds_events::metrics::{
    LocationLabels, QueueErrorLabels, QueueLabels, RDS_EVENTS, RDS_EVENTS_HELP, RDS_EVENTS_LAST,
    RDS_EVENTS_LAST_HELP, RDS_EVENTS_OLDEST_AGE, RDS_EVENTS_OLDEST_AGE_HELP,
    RDS_EVENTS_QUEUE_ERRORS, RDS_EVENTS_QUEUE_ERRORS_HELP, RDS_EVENTS_RECEIVING,
    RDS_EVENTS_RECEIVING_HELP, RdsEventLabels, RdsEventsGauge, RdsEventsMetrics,
    RdsEventsQueueErrors,
};
pub use crate::aws::rds_events::queue::EventsQueue;
pub use crate::aws::rds_events::queue_address::QueueAddress;
pub use crate::aws::rds_events::receiver::RdsEventsReceiver;
pub use crate::instance::certificate::{
    CERTIFICATE_EXPIRY, CERTIFICATE_EXPIRY_HELP, CertificateExpiry, CertificateLabels,
};
pub use crate::instance::instance_reconciler::RdsConfig;
pub use crate::offers::{
    OFFERS_READ, OFFERS_READ_HELP, OFFERS_REFRESHES, OFFERS_REFRESHES_HELP, OfferLabels,
    OfferMetrics, OfferReadTimes, OfferRefresh, OfferRefreshLabels, OfferRefreshes,
};
pub use crate::origin::allowed_sources::{NamespaceSources, SourcesByNamespace};
pub use crate::origin::source_policy::{SourcePolicy, UnownedSources};
pub use lockstep_cloud_database_api::{ALLOWED_SOURCES, REGION, ROLE_ARN};
pub use reconciler::CloudDatabaseReconciler;

/// Returns the RBAC rules that the operator needs besides those for its own kind: it reads and watches the Secret of an
/// object, owns the Secrets that it creates, and reads in Namespaces whose objects may use the data of theirs.
#[must_use]
pub fn rbac_rules() -> Vec<serde_json::Value> {
    vec![
        credentials::owned_secrets::owned_type().rbac_rule(),
        origin::source_policy::rbac_rule(),
    ]
}

/// Returns the RBAC rules that the check of annotations at admission needs: it reads the Namespace of an object.
#[must_use]
pub fn admission_check_rules() -> Vec<serde_json::Value> {
    vec![aws::namespaces::rbac_rule_of_check()]
}
