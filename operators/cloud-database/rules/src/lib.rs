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
    Backup, CloudDatabase, CloudDatabaseSpec, Credentials, DeletionPolicy, SecretSelectors,
    Storage, StorageType,
};
pub use status::{CloudDatabaseStatus, Endpoint};

/// The finalizer that keeps an object until its instance is gone.
pub const FINALIZER: &str = "database.example.com/finalizer";
