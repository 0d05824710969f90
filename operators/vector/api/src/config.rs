//! Vector's configuration language: components, options, topology.

pub(crate) mod aliases;
pub(crate) mod catalogue;
pub(crate) mod compilation;
pub(crate) mod component;
pub(crate) mod confinement;
pub(crate) mod diagnostic;
pub(crate) mod encodings;
pub(crate) mod enrichment_tables;
pub(crate) mod event_type;
pub(crate) mod interpolation;
pub(crate) mod limits;
pub(crate) mod listen_address;
pub(crate) mod option_diagnostics;
pub(crate) mod option_format;
pub(crate) mod option_path;
pub(crate) mod options;
pub(crate) mod outputs;
pub(crate) mod programs;
pub(crate) mod start_up;
pub(crate) mod toml_compat;
pub(crate) mod topology;
pub(crate) mod transforms;
pub(crate) mod validate;
