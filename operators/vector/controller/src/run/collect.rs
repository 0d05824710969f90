//! What a workload selects, and what it runs now.

pub(crate) mod data_directory;
pub(crate) mod running_objects;
pub(crate) mod stored_parts;
