//! Vector's configuration language: components, options, topology. This crate is pure.
//!
//! [`validate_config`] reports the errors that `vector validate --no-environment` reports. [`validate_start_up`]
//! reports those errors of the start of Vector that can be found without its environment: template confinement, and
//! components that cannot be built. [`validate_secrets`] reports references to secrets that the start cannot read.

mod aliases;
mod catalogue;
mod catalogue_error;
mod compilation;
mod component;
pub mod confinement;
mod diagnostic;
mod encodings;
mod enrichment_tables;
mod event_type;
mod http_endpoint;
pub mod interpolation;
mod limits;
pub mod listen_address;
mod literal_variables;
mod nulls;
mod option_diagnostics;
mod option_format;
mod option_list;
pub mod option_path;
mod option_words;
mod options;
mod outputs;
mod programs;
mod removed;
mod start_up;
mod texts;
mod toml_compat;
mod topology;
mod transforms;
pub mod unix_socket;
mod unknown_type;
pub mod usage;
mod validate;
mod vector_version;
mod vrl_environment;

pub use lockstep_vector_vrl::VRL_VERSION;

pub use crate::catalogue::{Catalogue, Entry};
pub use crate::catalogue_error::CatalogueError;
pub use crate::component::{Component, ComponentKind, KUBERNETES_EVENTS, components, is_pattern};
pub use crate::diagnostic::{Check, Diagnostic};
pub use crate::interpolation::Interpolation;
pub use crate::limits::ComponentLimits;
pub use crate::literal_variables::find_literal_variables;
pub use crate::option_list::{OptionEntry, Requirement};
pub use crate::options::Options;
pub use crate::outputs::output_names;
pub use crate::start_up::{validate_http_hosts, validate_secrets, validate_start_up};
pub use crate::texts::{TextPosition, for_each_text};
pub use crate::unknown_type::similar_types;
pub use crate::validate::{ProgramScope, validate_config};
pub use crate::vector_version::VectorVersion;
pub use crate::vrl_environment::{CheckFile, ProgramFileError, VrlEnvironment};
