//! Error of the collector.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Reason why there is no collector.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The configuration cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Unreadable {
        /// File.
        file: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// The configuration is invalid.
    #[error("{} is no configuration of receivers: {error}", file.display())]
    Invalid {
        /// File.
        file: PathBuf,
        /// Error with its place.
        error: serde_json::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Error of the operating system.
        error: std::io::Error,
    },
}
