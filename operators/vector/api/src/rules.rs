//! The rules of pipelines.

pub(crate) mod cached_validation;
pub(crate) mod component_name;
pub(crate) mod context;
pub(crate) mod pipeline;
pub(crate) mod validation_cache;
