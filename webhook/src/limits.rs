//! What the gate takes at most, so that nobody can keep it from serving others.

use std::time::Duration;

/// The bounds. Each one that bites is counted in `lockstep_gate_limited_total`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a client may take to agree on TLS.
    pub handshake_timeout: Duration,
    /// How long a header may take to arrive once it has begun.
    pub read_header_timeout: Duration,
    /// How long a connection may stand idle. Above the 90 s for which the API server keeps idle
    /// connections: closing first would race with its next request.
    pub idle_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a whole request may take. What the client names as `?timeout=` counts if it is less.
    pub request_timeout: Duration,
    /// How many connections stand at once. At the limit, the one that has been idle for longest makes
    /// room, or else the one whose request has been arriving for longest.
    pub max_connections: usize,
    /// How many reviews are judged at once. What comes beyond is shed, and tried again by the API
    /// server.
    pub max_requests_inflight: usize,
    /// How large one body may be.
    pub max_request_bytes: usize,
    /// How large one body may be that is to be converted: whole lists come at once.
    pub max_conversion_bytes: usize,
    /// How much all bodies may take that are held at once; large ones count as what they become when they
    /// are read.
    pub max_inflight_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            read_header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(2),
            body_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            max_connections: 4096,
            max_requests_inflight: 256,
            // What one update carries at most: two objects of the API server's request limit (3 MiB)
            // and the envelope around them.
            max_request_bytes: 7 << 20,
            max_conversion_bytes: 32 << 20,
            max_inflight_bytes: 256 << 20,
        }
    }
}

/// Which bound has bitten, as the metric names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Handshake,
    Header,
    Body,
    Request,
    Connections,
    RequestsInflight,
    RequestBytes,
    InflightBytes,
    Depth,
}

impl Limit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Header => "header",
            Self::Body => "body",
            Self::Request => "request",
            Self::Connections => "connections",
            Self::RequestsInflight => "reviews",
            Self::RequestBytes => "body-bytes",
            Self::InflightBytes => "bodies-bytes",
            Self::Depth => "depth",
        }
    }
}
