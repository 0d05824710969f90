//! Registration of metrics.

use prometheus_client::registry::{Metric, Registry};

/// Registers a metric and returns it.
pub(crate) fn registered<M: Metric + Clone>(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    metric: M,
) -> M {
    registry.register(name, help, metric.clone());
    metric
}
