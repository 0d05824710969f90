//! Limits that keep a single client from blocking the webhook for other clients.

use std::time::Duration;

/// Limits of requests. Each request that exceeds one is counted in `lockstep_webhook_rejected_requests_total`. The
/// limits of connections are [`lockstep_http_server::Limits`].
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_webhook::Limits;
///
/// let limits = Limits {
///     request_timeout: Duration::from_secs(5),
///     max_requests_inflight: 64,
///     ..Limits::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time-out of reading a body.
    pub body_timeout: Duration,
    /// Time-out of a whole request. The `?timeout=` of the client applies if it is shorter.
    pub request_timeout: Duration,
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
            body_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            max_requests_inflight: 256,
            // The largest update contains two objects of the API server's request limit (3 MiB) and the
            // `AdmissionReview` around them.
            max_request_bytes: 7 << 20,
            max_conversion_bytes: 32 << 20,
            max_inflight_bytes: 256 << 20,
        }
    }
}

/// Limit of requests that was exceeded. Its name in the metric is that of the option that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    BodyTimeout,
    RequestTimeout,
    MaxRequestsInflight,
    MaxRequestBytes,
    MaxConversionBytes,
    MaxInflightBytes,
}

impl Limit {
    pub(crate) const ALL: [Self; 6] = [
        Self::BodyTimeout,
        Self::RequestTimeout,
        Self::MaxRequestsInflight,
        Self::MaxRequestBytes,
        Self::MaxConversionBytes,
        Self::MaxInflightBytes,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BodyTimeout => "body-timeout",
            Self::RequestTimeout => "request-timeout",
            Self::MaxRequestsInflight => "max-requests-inflight",
            Self::MaxRequestBytes => "max-request-bytes",
            Self::MaxConversionBytes => "max-conversion-bytes",
            Self::MaxInflightBytes => "max-inflight-bytes",
        }
    }
}
