//! CloudDatabase: reconciliation of an AWS RDS instance with the desired state of its object.

#![allow(clippy::doc_markdown, reason = "product names are no code")]

mod absence;
mod access;
mod access_check;
mod access_pool;
mod account;
mod adoption;
mod allowed_sources;
mod applied_values;
mod aws_environment;
mod aws_metrics;
mod call_error;
mod certificate;
mod circumstances;
mod connection_secret;
mod creation;
mod credentials;
mod deleted_instance;
mod deletion_policy;
mod descriptions;
mod drift;
mod error_code;
mod final_snapshot;
mod finalization;
mod generated_password;
mod iam_policy;
mod identity;
mod instance_reconciler;
mod instance_status;
mod known_passwords;
mod location;
mod master_password;
mod master_user;
mod modification;
mod modify;
mod namespaces;
mod observation;
mod offers;
mod owned_secrets;
mod preconditions;
mod rate_limits;
mod rds_client;
mod rds_clients;
mod rds_events;
mod recent;
mod reconciler;
mod recorded_instance;
mod release;
mod remains;
mod replacement;
mod replica_source;
mod replication;
mod second_description;
mod secrets;
mod settings;
mod shared_list;
mod source_owner;
mod source_policy;
mod step_error;
mod sufficient;
mod suspension;
mod sync;
mod tags;
#[cfg(test)]
mod tests;

pub use crate::access_check::{AccessCheck, AccessError};
pub use crate::allowed_sources::{NamespaceSources, SourcesByNamespace};
pub use crate::aws_metrics::{AWS_REQUESTS, AWS_REQUESTS_HELP, AwsRequestLabels, AwsRequests};
pub use crate::certificate::{
    CERTIFICATE_EXPIRY, CERTIFICATE_EXPIRY_HELP, CertificateExpiry, CertificateLabels,
};
pub use crate::iam_policy::{IamPolicyScope, iam_policy, partition_of};
pub use crate::instance_reconciler::RdsConfig;
pub use crate::offers::{
    OFFERS_READ, OFFERS_READ_HELP, OFFERS_REFRESHES, OFFERS_REFRESHES_HELP, OfferLabels,
    OfferMetrics, OfferReadTimes, OfferRefresh, OfferRefreshLabels, OfferRefreshes,
};
pub use crate::rate_limits::RateLimits;
pub use crate::rds_client::RdsClient;
pub use crate::rds_clients::RdsClients;
pub use crate::rds_events::RdsEvents;
pub use crate::rds_events::metrics::{
    LocationLabels, QueueErrorLabels, QueueLabels, RDS_EVENTS, RDS_EVENTS_HELP, RDS_EVENTS_LAST,
    RDS_EVENTS_LAST_HELP, RDS_EVENTS_OLDEST_AGE, RDS_EVENTS_OLDEST_AGE_HELP,
    RDS_EVENTS_QUEUE_ERRORS, RDS_EVENTS_QUEUE_ERRORS_HELP, RDS_EVENTS_RECEIVING,
    RDS_EVENTS_RECEIVING_HELP, RdsEventLabels, RdsEventsGauge, RdsEventsMetrics,
    RdsEventsQueueErrors,
};
pub use crate::rds_events::queue::EventsQueue;
pub use crate::rds_events::queue_address::QueueAddress;
pub use crate::rds_events::receiver::RdsEventsReceiver;
pub use lockstep_cloud_database_api::{ALLOWED_SOURCES, REGION, ROLE_ARN};
pub use reconciler::CloudDatabaseReconciler;
pub use source_policy::{SourcePolicy, UnownedSources};

/// Returns the RBAC rules that the operator needs besides those for its own kind: it reads and watches the Secret of an
/// object, owns the Secrets that it creates, and reads in Namespaces whose objects may use the data of theirs.
#[must_use]
pub fn rbac_rules() -> Vec<serde_json::Value> {
    vec![
        owned_secrets::owned_type().rbac_rule(),
        source_policy::rbac_rule(),
    ]
}

/// Returns the RBAC rules that the check of annotations at admission needs: it reads the Namespace of an object.
#[must_use]
pub fn admission_check_rules() -> Vec<serde_json::Value> {
    vec![namespaces::rbac_rule_of_check()]
}
