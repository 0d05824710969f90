//! What the loop counts, under controller-runtime's names where it has one.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The loop's metrics.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) reconciles: Family<ResultLabels, Counter>,
    pub(crate) duration: Family<ControllerLabels, Histogram>,
    pub(crate) violations: Family<ViolationLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ResultLabels {
    pub(crate) controller: String,
    pub(crate) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ControllerLabels {
    pub(crate) controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ViolationLabels {
    pub(crate) kind: String,
    pub(crate) rule: String,
    pub(crate) place: &'static str,
}

const BUCKETS_SECONDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS_SECONDS)),
            violations: Family::default(),
        };
        registry.register(
            "controller_runtime_reconcile",
            "Reconciles by result",
            metrics.reconciles.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Time that a reconcile takes",
            metrics.duration.clone(),
        );
        registry.register(
            "lockstep_rule_violations",
            "Broken rules by kind, rule and place",
            metrics.violations.clone(),
        );
        metrics
    }
}
