//! Statuses of a workload and of its pipelines.

pub(crate) mod pipeline_statuses;
pub(crate) mod warnings;
pub(crate) mod workload_status;
