//! What the fuzz targets share: the judges they ask, and how an input is read and changed.

#![forbid(unsafe_code)]

pub mod input;
pub mod judges;
pub mod mutate;
