//! CloudDatabase: types, defaults and validation rules. This crate is pure; the controller crate calls RDS.

#![allow(
    clippy::doc_markdown,
    reason = "doc comments here become CRD descriptions, read by users"
)]

mod connection_secret;
mod crd;
mod credentials;
pub mod effects;
mod engine;
mod kind;
mod location;
mod monitoring;
mod network;
mod offers;
mod origin;
mod references;
mod reserved_names;
mod schemas;
mod secret_names;
mod spec;
mod status;
mod tenancy;
mod validation;
mod versions;
mod window;

pub use crate::validation::{check_password, check_username};
pub use connection_secret::ConnectionSecret;
pub use credentials::{Credentials, GeneratedPassword, ManagedPassword, SecretSelectors};
pub use engine::{Engine, EngineLifecycleSupport, compare_versions, version_matches};
pub use kind::ruleset;
pub use location::{
    ALLOWED_REGIONS, ALLOWED_ROLE_ARNS, EXTERNAL_ID, EXTERNAL_ID_PREFIX, REGION, ROLE_ARN,
    is_external_id, is_region, is_role_arn,
};
pub use monitoring::{DatabaseInsights, EnhancedMonitoring, Monitoring, PerformanceInsights};
pub use network::{Network, NetworkType};
pub use offers::{OfferCatalogues, OfferContext};
pub use origin::{Adopt, ManagementPolicy, PointInTime, ReplicaOf, RestoreFrom};
pub use secret_names::{connection_secret_name, generated_secret_name};
pub use spec::{
    ApplyChanges, Backup, CloudDatabase, CloudDatabaseSpec, DeletionPolicy, Encryption, Storage,
    StorageType,
};
pub use status::{
    AcceptedChange, AppliedStorage, Certificate, CloudDatabaseStatus, DeletionRequest, Endpoint,
    LastChange, MasterUserSecret,
};
pub use tenancy::{NamespacePolicy, POLICY_SECTION, Quota, matches_pattern};

/// Finalizer that keeps an object until its instance is deleted.
pub const FINALIZER: &str = "database.example.com/finalizer";

/// Annotation with which a user requests a new, empty instance in place of others: their resource IDs, separated by
/// commas. It has no effect on instances that it does not list, and thus none on the new instance.
pub const REPLACES_INSTANCE: &str = "database.example.com/replaces-instance";

/// Annotation of a Namespace: the namespaces whose objects may use instances and snapshots of its objects as sources of data,
/// separated by commas, or `*` for all.
pub const SHARED_WITH: &str = "database.example.com/shared-with";

/// Annotation of a Namespace: the instances and snapshots that its objects may adopt, replicate and restore although no object of
/// the cluster owns them. Identifiers or patterns with `*`, separated by commas.
pub const ALLOWED_SOURCES: &str = "database.example.com/allowed-sources";

/// Annotation with which a user requests another password from the controller, if it generates the password. Each new value
/// leads to one new password.
pub const ROTATE_PASSWORD: &str = "database.example.com/rotate-password";
