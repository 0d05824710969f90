//! API types of Vector pipelines and validation of Vector configurations, without I/O.
//!
//! [`validate_config`] reports the errors that `vector validate --no-environment` reports. [`validate_start_up`] reports
//! those errors of the start of Vector that can be found without its environment: so far only template confinement.

#![allow(
    clippy::doc_markdown,
    reason = "doc comments here become CRD descriptions, read by users"
)]

mod component_namespace;
mod config;
pub mod port_allocation;
mod rules;
mod tenancy;
mod types;

pub use crate::config::catalogue::Catalogue;
pub use crate::config::component::ComponentKind;
pub use crate::config::confinement::OptOut;
pub use crate::config::diagnostic::{Check, Diagnostic};
pub use crate::config::start_up::validate_start_up;
pub use crate::config::validate::validate_config;
pub use crate::rules::context::VectorContext;
pub use crate::types::agent::{Vector, VectorSpec};
pub use crate::types::aggregator::{
    Aggregator, Autoscaling, ClusterVectorAggregator, ClusterVectorAggregatorSpec,
    DisruptionBudget, EventCollector, EvictionPolicy, Persistence, VectorAggregator,
    VectorAggregatorSpec,
};
pub use crate::types::pipeline::{
    ClusterVectorPipeline, Pipeline, PipelineSpec, PipelineStatus, SecretKind, SecretSource,
    VectorPipeline,
};
pub use crate::types::runner_kind::RunnerKind;
pub use crate::types::workload::{
    Api, ConfigCheck, PipelineSelector, PullPolicy, Workload, WorkloadStatus,
};
pub use vector_vrl::{Compiler, InProcessCompiler, MakeCompiler, Program, VrlDiagnostic};
