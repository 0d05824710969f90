//! Prometheus metrics of the webhook, under the names of controller-runtime where it has one.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::limits::Limit;

/// Metrics of the webhook.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) latency: Family<WebhookLabels, Histogram>,
    pub(crate) in_flight: Family<WebhookLabels, Gauge>,
    pub(crate) violations: Family<ViolationLabels, Counter>,
    pub(crate) panics: Counter,
    pub(crate) crd_validation_skipped: Counter,
    /// Metrics of the server, which count the requests that exceed a limit together with the connections.
    server: lockstep_http_server::Metrics,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) webhook: &'static str,
    pub(crate) code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct WebhookLabels {
    pub(crate) webhook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ViolationLabels {
    pub(crate) kind: String,
    pub(crate) rule: String,
    pub(crate) component: &'static str,
}

/// Histogram buckets from 100 µs, the time of a denial, to 1 s, the shortest time-out of the API server.
const BUCKETS_SECONDS: [f64; 10] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0,
];

impl Metrics {
    /// Registers the metrics. Those of the server have been registered before.
    pub fn register(registry: &mut Registry, server: lockstep_http_server::Metrics) -> Self {
        // A counter that starts with its first event has no increase at that event: alerts would miss it.
        for limit in Limit::ALL {
            server.start(limit.name());
        }
        let mut add = Registrar(registry);
        Self {
            requests: add.metric(
                "controller_runtime_webhook_requests",
                "Admission requests by webhook and HTTP status code",
                Family::default(),
            ),
            latency: add.metric(
                "controller_runtime_webhook_latency_seconds",
                "Time to answer an admission request",
                Family::new_with_constructor(|| Histogram::new(BUCKETS_SECONDS)),
            ),
            in_flight: add.metric(
                "controller_runtime_webhook_requests_in_flight",
                "Admission requests being answered",
                Family::default(),
            ),
            violations: add.metric(
                "lockstep_rule_violations",
                "Total number of rule violations by kind, rule and component",
                Family::default(),
            ),
            panics: add.metric(
                "controller_runtime_webhook_panics",
                "Admission requests that failed with a panic",
                Counter::default(),
            ),
            crd_validation_skipped: add.metric(
                "lockstep_webhook_crd_validation_skipped",
                "Admission requests without schema and CEL validation, because the API server had applied the same CRD",
                Counter::default(),
            ),
            server,
        }
    }

    /// Counts a request that exceeded a limit.
    pub(crate) fn rejected(&self, limit: Limit) {
        self.server.rejected(limit.name());
    }

    /// Returns metrics that are registered nowhere else.
    #[cfg(test)]
    pub(crate) fn unregistered() -> Self {
        let mut registry = Registry::default();
        let server = lockstep_http_server::Metrics::register(&mut registry);
        Self::register(&mut registry, server)
    }
}

/// Registry that takes name, help text and metric in one call.
struct Registrar<'a>(&'a mut Registry);

impl Registrar<'_> {
    fn metric<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}
