//! Vector's configuration language: components, options, topology. This crate is pure.
//!
//! [`validate_config`] reports the errors that `vector validate --no-environment` reports. [`validate_start_up`]
//! reports those errors of the start of Vector that can be found without its environment: template confinement, and
//! components that cannot be built.

mod aliases;
mod catalogue;
mod compilation;
mod component;
pub mod confinement;
mod diagnostic;
mod encodings;
mod enrichment_tables;
mod event_type;
pub mod interpolation;
mod limits;
pub mod listen_address;
mod literal_variables;
mod option_diagnostics;
mod option_format;
pub mod option_path;
mod options;
mod outputs;
mod programs;
mod start_up;
mod toml_compat;
mod topology;
mod transforms;
mod validate;
mod vrl_environment;

pub use crate::catalogue::{Catalogue, Entry};
pub use crate::component::{Component, ComponentKind, KUBERNETES_EVENTS, components, is_pattern};
pub use crate::diagnostic::{Check, Diagnostic};
pub use crate::interpolation::Interpolation;
pub use crate::literal_variables::find_literal_variables;
pub use crate::options::Options;
pub use crate::start_up::validate_start_up;
pub use crate::validate::{ProgramScope, validate_config};
pub use crate::vrl_environment::{ProgramFileError, VrlEnvironment};
