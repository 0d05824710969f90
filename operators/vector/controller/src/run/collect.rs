//! Pipelines that a workload selects, and the configuration that it runs now.

pub(crate) mod collector;
pub(crate) mod data_directory;
pub(crate) mod published;
pub(crate) mod running_objects;
pub(crate) mod stored_parts;
