//! Shared code of the fuzz targets: the validators, and how an input is parsed and mutated.

#![forbid(unsafe_code)]

pub mod input;
pub mod mutate;
pub mod validators;
