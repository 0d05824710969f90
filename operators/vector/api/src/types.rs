//! The custom resources: Vector, the aggregators and the pipelines.

pub(crate) mod agent;
pub(crate) mod aggregator;
pub(crate) mod crd;
pub(crate) mod kubernetes_fields;
pub(crate) mod kubernetes_schema;
pub(crate) mod pipeline;
pub(crate) mod runner_kind;
pub(crate) mod runs_vector;
pub(crate) mod workload;
