//! Pipelines, values of Secrets and quotas → the configuration with which Vector starts.

pub(crate) mod assembler;
pub(crate) mod config_files;
pub(crate) mod pipeline_secrets;
pub(crate) mod quota_audit;
pub(crate) mod quotas;
pub(crate) mod start;
