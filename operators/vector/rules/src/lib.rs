//! API types of Vector pipelines and validation of Vector configurations, without I/O.
//!
//! [`validate_config`] reports the errors that `vector validate --no-environment` reports. [`validate_start_up`] reports
//! those errors of the start of Vector that can be found without its environment: so far only template confinement.

#![allow(
    clippy::doc_markdown,
    reason = "doc comments here become CRD descriptions, read by users"
)]

mod addresses;
mod agent;
mod aggregator;
mod called;
mod catalogue;
mod compilation;
mod compilers;
mod component;
mod confinement;
mod crd;
mod diagnostics;
mod encodings;
mod flow;
mod forms;
mod functions;
mod limits;
mod names;
mod option_errors;
mod options;
mod outputs;
mod patterns;
mod pipeline;
mod pipeline_rules;
mod problem;
mod program;
mod programs;
mod readable;
mod results;
mod role;
pub mod sharing;
mod size;
mod start_up;
mod tables;
mod tenant_policy;
mod tenants;
mod topology;
mod transforms;
mod usable;
mod validated;
mod validator;
mod workload;

pub use agent::{Vector, VectorSpec};
pub use aggregator::{
    Aggregator, Autoscaling, ClusterVectorAggregator, ClusterVectorAggregatorSpec,
    DisruptionBudget, EventCollector, EvictionPolicy, Persistence, VectorAggregator,
    VectorAggregatorSpec,
};
pub use catalogue::Catalogue;
pub use compilers::{Compiler, MakeCompiler, set_compiler};
pub use component::ComponentKind;
pub use confinement::OptOut;
pub use pipeline::{
    ClusterVectorPipeline, Pipeline, PipelineSpec, PipelineStatus, SecretKind, SecretSource,
    VectorPipeline,
};
pub use problem::{Check, Diagnostic};
pub use program::{Program, VrlDiagnostic};
pub use role::RunnerKind;
pub use start_up::validate_start_up;
pub use validator::validate_config;
pub use workload::{Api, ConfigCheck, PipelineSelector, PullPolicy, Workload, WorkloadStatus};
