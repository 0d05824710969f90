//! Errors of the control plane.

use std::path::PathBuf;

/// Error of the control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}; is it installed?")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A program ended with an error.
    #[error("`{command}` failed:\n{output}")]
    Failed {
        /// Command line.
        command: String,
        /// Output of the program.
        output: String,
    },
    /// A condition was not met in time.
    #[error("timed out after {seconds} s waiting for {what}{hint}")]
    Timeout {
        /// Condition that was awaited, as in "waiting for …".
        what: String,
        /// Time-out in seconds.
        seconds: u64,
        /// Further information, such as the last output of a process.
        hint: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The API server returned an error, or could not be reached.
    #[error("request to the API server failed: {0}")]
    Api(#[from] kube::Error),
    /// A manifest has unexpected content.
    #[error("{0}")]
    Manifest(String),
}

impl Error {
    /// Adds a hint to a time-out and returns other errors unchanged.
    pub(crate) fn with_hint(self, hint: &str) -> Self {
        match self {
            Self::Timeout {
                what,
                seconds,
                hint: known,
            } => Self::Timeout {
                what,
                seconds,
                hint: known + hint,
            },
            other => other,
        }
    }

    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
