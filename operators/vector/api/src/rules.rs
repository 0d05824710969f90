//! The rules of pipelines, and of the workload kinds.

pub(crate) mod cached_validation;
pub(crate) mod component_name;
pub(crate) mod context;
pub(crate) mod label_selector;
pub(crate) mod literal_variables;
pub(crate) mod pipeline;
pub(crate) mod pipeline_tests;
pub(crate) mod update_strategy;
pub(crate) mod validation_cache;
#[cfg(test)]
mod versions;
pub(crate) mod workload;
mod workload_change;
