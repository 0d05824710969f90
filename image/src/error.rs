//! Errors of writing an image.

use std::path::{Path, PathBuf};

/// Error of writing an image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The program does not exist.
    #[error(
        "{0} does not exist; build it with `cargo build --profile dist --package lockstep --no-default-features`"
    )]
    NotBuilt(PathBuf),
    /// The libraries of the program could not be determined.
    #[error("`ldd {program}` failed: {output}")]
    Libraries {
        /// Path of the program.
        program: PathBuf,
        /// Output of `ldd`.
        output: String,
    },
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
