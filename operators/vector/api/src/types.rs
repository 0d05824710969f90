//! The custom resources: Vector, the aggregators and the pipelines.

pub(crate) mod agent;
pub(crate) mod aggregator;
pub(crate) mod aggregator_settings;
pub(crate) mod crd;
pub(crate) mod kubernetes_fields;
pub(crate) mod kubernetes_schema;
pub(crate) mod pipeline;
pub(crate) mod workload;
pub(crate) mod workload_kind;
pub(crate) mod workload_role;
