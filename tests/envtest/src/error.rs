//! Errors of the control plane.

use std::path::PathBuf;

/// Error of the control plane.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// A program that must be installed was not found.
    #[error("cannot find `{program}` on the PATH, which {purpose}; {advice}")]
    MissingProgram {
        /// Name of the program.
        program: &'static str,
        /// Purpose of the program, as in "which …".
        purpose: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// A download failed because the network was not reachable.
    #[error("{what}; the network was not reachable:\n{output}\n{advice}")]
    Network {
        /// Subject of the failed download.
        what: String,
        /// Output of the program that downloads.
        output: String,
        /// Advice for the user.
        advice: &'static str,
    },
    /// Another process listens on the port of a component.
    #[error(
        "the port of {program} was taken by another process after it had been chosen; run the command again, which \
         chooses other ports{output}"
    )]
    PortInUse {
        /// Name of the program.
        program: String,
        /// Last output of the program.
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

/// Advice for a failed download of Go modules.
pub(crate) const NETWORK_ADVICE_GO: &str = "Check the network connection, and behind a proxy HTTPS_PROXY or GOPROXY. \
    Without network, set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl.";

/// Advice for a failed download of Python packages.
pub(crate) const NETWORK_ADVICE_PIP: &str = "Check the network connection, and behind a proxy HTTPS_PROXY or \
    PIP_INDEX_URL.";

/// Parts of the messages with which Go and pip report that a server cannot be reached.
const NETWORK_ERRORS: [&str; 8] = [
    "connection refused",
    "Connection refused",
    "no such host",
    "name resolution",
    "Network is unreachable",
    "network is unreachable",
    "i/o timeout",
    "timed out",
];

impl Error {
    /// Returns the conversion of an error at the start of a program. `missing` is the error if it is not installed.
    pub(crate) fn start(
        program: &str,
        missing: impl FnOnce() -> Self,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let program = program.to_owned();
        move |source| match source.kind() {
            std::io::ErrorKind::NotFound => missing(),
            _ => Self::Start { program, source },
        }
    }

    /// Returns the error of a program that ended with an error and that may have failed because of the network.
    pub(crate) fn of_failed(
        command: String,
        output: String,
        what: &str,
        advice: &'static str,
    ) -> Self {
        if NETWORK_ERRORS.iter().any(|error| output.contains(error)) {
            let what = what.to_owned();
            return Self::Network {
                what,
                output,
                advice,
            };
        }
        Self::Failed { command, output }
    }

    /// Returns true if a program may have failed because of the network.
    pub(crate) fn is_network_error(&self) -> bool {
        match self {
            Self::Network { .. } => true,
            Self::Failed { output, .. } => NETWORK_ERRORS.iter().any(|it| output.contains(it)),
            _ => false,
        }
    }

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
