//! CRD status: the file by which one process reports it and another one reads it.

pub(crate) mod cache;
pub(crate) mod report;
#[cfg(feature = "client")]
pub(crate) mod reporter;
