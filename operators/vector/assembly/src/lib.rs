//! Assembly: the configuration of a workload that runs Vector, from its pipelines. This crate is pure.
//!
//! [`render`] makes the part of one pipeline: its components with names that no other pipeline has, and with inputs that
//! are components of the same pipeline. A part depends on no other pipeline and can be stored. [`assemble`] joins the
//! parts of all pipelines with the global options of the workload; a pipeline that cannot be a part of the configuration
//! is left out and reported, and the others run. A [`StartCheck`] also leaves out those with which Vector would not start.
//! [`publish`] divides the configuration into files.

mod assembly;
mod canonical;
mod data_moves;
mod events;
mod globals;
mod inputs;
mod isolation;
mod kebab_case;
mod layout;
mod merged_sources;
mod names;
mod options;
mod part;
mod pipeline;
mod precedence;
mod publication;
mod reload;
mod render;
pub mod secrets;
mod selection;
mod services;
mod start_check;

pub use crate::assembly::{Assembly, Rendered, assemble, join, render_all};
pub use crate::canonical::hash as fingerprint;
pub use crate::data_moves::{DataMove, DataMoves};
pub use crate::kebab_case::kebab_case;
pub use crate::layout::{DataLayout, UnknownLayout};
pub use crate::options::{ApiOptions, AssemblyOptions, InternalMetrics};
pub use crate::part::{Components, PipelinePart};
pub use crate::pipeline::{PipelineKey, PipelineProblem, RunnablePipeline};
pub use crate::precedence::{PresentState, PublishedParts};
pub use crate::publication::{PublicationLimits, PublishedFiles, TooLarge, last_file_of, publish};
pub use crate::reload::{global_options_hash, is_reloaded};
pub use crate::render::render;
pub use crate::secrets::{SecretReference, SecretValues};
pub use crate::services::{PipelineService, Protocol, SERVICE_NAME, ServicePort};
pub use crate::start_check::{Checked, Extent, StartCheck, StartError};
pub use lockstep_vector_api::{ComponentNames, WorkloadRole};
