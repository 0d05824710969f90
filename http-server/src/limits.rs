//! Limits that keep a single client from blocking the server for other clients.

use std::time::Duration;

/// Limits of connections. If [`Metrics`](crate::Metrics) are set, each connection that exceeds one is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time-out of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time-out of a header, from its first byte to its last.
    pub read_header_timeout: Duration,
    /// Time-out of an idle connection. It is longer than the 90 s for which the API server keeps idle
    /// connections: if the webhook closed first, it would race with the next request.
    pub idle_timeout: Duration,
    /// Time-out of a response, from its first byte that the client does not read at once to its last. HTTP/2 has the same
    /// time-out for the window in which a client allows bytes of a response; it ends the connection with all its streams.
    pub write_timeout: Duration,
    /// Maximum number of open connections. When it is exceeded, the connection that has been idle for longest is
    /// closed, or else the one with the oldest incomplete request.
    pub max_connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            read_header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(2),
            write_timeout: Duration::from_secs(10),
            max_connections: 4096,
        }
    }
}

/// Limit of connections that was exceeded. Its name in the metric is that of the option that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    HandshakeTimeout,
    ReadHeaderTimeout,
    WriteTimeout,
    MaxConnections,
}

impl Limit {
    pub(crate) const ALL: [Self; 4] = [
        Self::HandshakeTimeout,
        Self::ReadHeaderTimeout,
        Self::WriteTimeout,
        Self::MaxConnections,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HandshakeTimeout => "handshake-timeout",
            Self::ReadHeaderTimeout => "read-header-timeout",
            Self::WriteTimeout => "write-timeout",
            Self::MaxConnections => "max-connections",
        }
    }
}
