//! Settings with which configuration files are read.

use lockstep_vector_api::VectorVersion;

/// Version and interpolation with which files are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// If true, environment variables are replaced in the text of each file.
    pub(crate) interpolates: bool,
    /// Version of Vector that reads them.
    pub(crate) version: VectorVersion,
}
