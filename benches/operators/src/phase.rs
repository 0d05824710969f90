//! Results of one phase of one run.

use std::collections::BTreeMap;

/// Phase of a measurement.
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    /// Time until the condition of the phase was met; none if it is that of a timer.
    pub(crate) seconds: Option<f64>,
    /// Used CPU time in seconds.
    pub(crate) cpu: f64,
    /// Peak memory in MiB since the start of the operator.
    pub(crate) peak: f64,
    /// Calls to the API server by verb and resource.
    pub(crate) api: BTreeMap<String, usize>,
    /// Requests to the DNS provider by method.
    pub(crate) provider: BTreeMap<String, usize>,
    /// Load average of the machine over a minute, at the end.
    pub(crate) load: f64,
}

impl Phase {
    /// Returns all calls to the API server.
    pub(crate) fn api_calls(&self) -> f64 {
        count(self.api.values().sum())
    }

    /// Returns all requests to the DNS provider.
    pub(crate) fn provider_requests(&self) -> f64 {
        count(self.provider.values().sum())
    }
}

/// Returns a number that is small enough to be exact.
#[allow(clippy::cast_precision_loss, reason = "the counts are small")]
pub(crate) fn count(of: usize) -> f64 {
    of as f64
}
