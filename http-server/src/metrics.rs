//! Prometheus metrics of the server, under the names of controller-runtime where it has one.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::limits::Limit;

/// Metrics of the webhook's server.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) certificates: Counter,
    pub(crate) certificate_errors: Counter,
    pub(crate) certificate_expiry: Gauge,
    rejected: Family<RejectionLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    reason: &'static str,
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            certificates: Counter::default(),
            certificate_errors: Counter::default(),
            certificate_expiry: Gauge::default(),
            rejected: Family::default(),
        };
        registry.register(
            "certwatcher_read_certificate",
            "Serving certificates that were loaded",
            metrics.certificates.clone(),
        );
        registry.register(
            "certwatcher_read_certificate_errors",
            "Certificates that could not be read or were invalid",
            metrics.certificate_errors.clone(),
        );
        registry.register(
            "lockstep_webhook_certificate_expiration_timestamp_seconds",
            "Expiration time of the serving certificate, in seconds since the Unix epoch",
            metrics.certificate_expiry.clone(),
        );
        registry.register(
            "lockstep_webhook_rejected_requests",
            "Connections and requests that were closed or rejected because of a limit, by the option that sets the limit",
            metrics.rejected.clone(),
        );
        for limit in Limit::ALL {
            metrics.start(limit.name());
        }
        metrics
    }

    /// Starts the counter of a limit at 0.
    pub fn start(&self, limit: &'static str) {
        let labels = RejectionLabels { reason: limit };
        drop(self.rejected.get_or_create(&labels));
    }

    /// Counts a connection or request that exceeded the limit with this name. The routes count the limits of their
    /// own here, too, so that one metric has all of them.
    pub fn rejected(&self, limit: &'static str) {
        let labels = RejectionLabels { reason: limit };
        self.rejected.get_or_create(&labels).inc();
    }
}
