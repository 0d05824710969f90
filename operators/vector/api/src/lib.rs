//! Types and rules of the Vector kinds: pipelines, agents and aggregators. This crate is pure.
//!
//! The rules of a pipeline validate its Vector configuration with [`validate_config`] and [`validate_start_up`],
//! restrict the pipelines of tenants, and keep pipelines that share a process [from using the same
//! address](port_allocation). A [`VectorContext`] gives them a compiler of programs and a cache.

#![allow(
    clippy::doc_markdown,
    reason = "doc comments here become CRD descriptions, read by users"
)]

mod catalogues;
mod change_preview;
mod component_namespace;
mod namespace_audit;
pub mod port_allocation;
mod rules;
pub mod selection;
mod tenancy;
mod test_result;
mod types;
mod vector_release;
pub mod workload_namespace;
mod workload_release;

pub use crate::catalogues::{Catalogues, UsedCatalogue};
pub use crate::change_preview::{ChangePreview, PreviewChange};
pub use crate::component_namespace::ComponentNamespace;
pub use crate::namespace_audit::NamespaceAudit;
pub use crate::rules::context::VectorContext;
pub use crate::tenancy::policy::{WorkloadLimits, is_exact, is_kaasops};
pub use crate::tenancy::quota;
pub use crate::test_result::{NamedResult, RunTests, TestResult};
pub use crate::types::agent::{Vector, VectorSpec};
pub use crate::types::aggregator::{
    ClusterVectorAggregator, ClusterVectorAggregatorSpec, VectorAggregator, VectorAggregatorSpec,
};
pub use crate::types::aggregator_settings::{
    Aggregator, Autoscaling, DisruptionBudget, EventCollector, EvictionPolicy, Persistence,
};
pub use crate::types::pipeline::{
    ClusterVectorPipeline, Pipeline, PipelineSpec, PipelineStatus, PipelineWorkload, SecretKind,
    SecretSource, VectorPipeline,
};
pub use crate::types::workload::{
    Api, ComponentNames, ConfigCheck, ConfigCheckMode, NotLoaded, PipelineSelector, PullPolicy,
    Reload, RunStatus, Workload, WorkloadChange, WorkloadStatus,
};
pub use crate::types::workload_kind::WorkloadKind;
pub use crate::types::workload_role::WorkloadRole;
pub use crate::workload_release::always_interpolates;
pub use lockstep_vector_config::confinement::OptOut;
pub use lockstep_vector_config::{
    Catalogue, CatalogueError, Check, Component, ComponentKind, ComponentLimits, Diagnostic, Entry,
    Interpolation, OptionEntry, ProgramFileError, ProgramScope, Requirement, VectorVersion,
    VrlEnvironment, components, find_literal_variables, interpolation, option_path, output_names,
    similar_types, usage, validate_config, validate_secrets, validate_start_up,
};
pub use lockstep_vector_vrl::{
    Compiler, Event, InProcessCompiler, MakeCompiler, NotRunnable, Program, ProgramLimits, Purpose,
    RunnableProgram, Stop, VrlDiagnostic,
};
