//! Why a control plane does not come up.

use std::path::PathBuf;

/// Why a control plane does not come up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program cannot be started.
    #[error("cannot start `{program}`: {source}; is it installed?")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A program that was to do something has failed.
    #[error("`{command}` failed:\n{output}")]
    Failed {
        /// The command line.
        command: String,
        /// What it printed.
        output: String,
    },
    /// A server did not come up.
    #[error("{what} did not happen within {seconds} s{hint}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
        /// Where to look.
        hint: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The API server refuses.
    #[error("the API server: {0}")]
    Api(#[from] kube::Error),
    /// Something in a manifest is not as it must be.
    #[error("{0}")]
    Manifest(String),
}

impl Error {
    /// The same, saying where to look when it was a time-out.
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
