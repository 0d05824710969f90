//! Origin of an instance: created without data, restored, replicated or adopted.

pub(crate) mod adoption;
pub(crate) mod allowed_sources;
pub(crate) mod creation;
pub(crate) mod preconditions;
pub(crate) mod remains;
pub(crate) mod replacement;
pub(crate) mod replica_source;
pub(crate) mod replication;
pub(crate) mod source_owner;
pub(crate) mod source_policy;
