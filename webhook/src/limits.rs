//! Limits that keep a single client from blocking the webhook for other clients.

use std::time::Duration;

/// Limits of the webhook. Each connection or request that exceeds one is counted in `lockstep_webhook_rejected_requests_total`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time-out of the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time-out of a header, from its first byte to its last.
    pub read_header_timeout: Duration,
    /// Time-out of an idle connection. It is longer than the 90 s for which the API server keeps idle
    /// connections: if the webhook closed first, it would race with the next request.
    pub idle_timeout: Duration,
    /// Time-out of reading a body.
    pub body_timeout: Duration,
    /// Time-out of a whole request. The `?timeout=` of the client applies if it is shorter.
    pub request_timeout: Duration,
    /// Maximum number of open connections. When it is exceeded, the connection that has been idle for longest is
    /// closed, or else the one with the oldest incomplete request.
    pub max_connections: usize,
    /// Maximum number of requests validated at the same time. Further requests are rejected with 429, and the API
    /// server retries them.
    pub max_requests_inflight: usize,
    /// Maximum size of the body of an admission request.
    pub max_request_bytes: usize,
    /// Maximum size of the body of a conversion request, which may contain a whole list of objects.
    pub max_conversion_bytes: usize,
    /// Maximum memory for all bodies in flight. A large body also counts with the memory estimate of its parsed
    /// form.
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
            // The largest update contains two objects of the API server's request limit (3 MiB) and the
            // `AdmissionReview` around them.
            max_request_bytes: 7 << 20,
            max_conversion_bytes: 32 << 20,
            max_inflight_bytes: 256 << 20,
        }
    }
}

/// Limit that was exceeded, as a label value of the metric.
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
