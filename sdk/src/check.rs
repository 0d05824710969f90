//! Offline check: reads files, validates the objects in them and prints the diagnostics.

pub(crate) mod additional_version;
pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod checker;
pub(crate) mod cluster;
pub(crate) mod crd_lookup;
pub(crate) mod diagnostic;
pub(crate) mod diff;
pub(crate) mod given_version;
pub(crate) mod inputs;
pub(crate) mod kind_suggestion;
pub(crate) mod render;
mod stored_status;
pub(crate) mod yaml;
