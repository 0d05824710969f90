//! Configuration → owned objects, and the change that they make.

pub(crate) mod builder;
pub(crate) mod changes;
pub(crate) mod cluster_scoped_names;
pub(crate) mod contents;
pub(crate) mod objects;
pub(crate) mod plan;
pub(crate) mod publisher;
