//! Offline check: reads files, validates the objects in them and prints the diagnostics.

pub(crate) mod apply;
pub(crate) mod document;
mod fields;
pub(crate) mod jsonl;
pub(crate) mod kinds;
pub(crate) mod output;
mod parts;
mod places;
pub(crate) mod scalar;
pub(crate) mod sources;
pub(crate) mod stored;
pub(crate) mod validator;
mod within;
