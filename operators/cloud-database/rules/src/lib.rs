//! CloudDatabase: its types, defaults and rules. Pure; what to do about RDS is the reconciler's.

#![allow(
    clippy::doc_markdown,
    reason = "doc comments here become CRD descriptions, read by users"
)]

mod crd;
mod engine;
mod kind;
mod reserved;
mod rules;
mod spec;
mod status;
mod window;

pub use engine::{Engine, compare_versions, version_matches};
pub use kind::ruleset;
pub use rules::{check_password, check_username};
pub use spec::{
    Backup, CloudDatabase, CloudDatabaseSpec, Credentials, DeletionPolicy, Encryption, Network,
    SecretSelectors, Storage, StorageType,
};
pub use status::{CloudDatabaseStatus, DeletionRequest, Endpoint};

/// The finalizer that keeps an object until its instance is gone.
pub const FINALIZER: &str = "database.example.com/finalizer";

/// The annotation by which an author asks for a new, empty instance in place of others: their resource IDs, separated by
/// commas. One that names others has no effect, so that it is used up with the instance that it names.
pub const REPLACES_INSTANCE: &str = "database.example.com/replaces-instance";
