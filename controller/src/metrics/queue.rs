//! Metrics of queues, with client-go's names.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics::in_progress::{InProgress, QueueInProgress};
use crate::metrics::registration::registered;

/// Metrics of all queues.
#[derive(Clone)]
pub(crate) struct Queues {
    depth: Family<Labels, Gauge>,
    adds: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    waited: Family<Labels, Histogram>,
    worked: Family<Labels, Histogram>,
    running: InProgress,
}

/// Metrics of one queue.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    pub(crate) depth: Gauge,
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
    pub(crate) in_progress: QueueInProgress,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

/// Buckets from a queue without a delay to one that is an hour behind.
const BUCKETS_SECONDS: [f64; 8] = [0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0];

fn histogram() -> Histogram {
    Histogram::new(BUCKETS_SECONDS)
}

impl Queues {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let histograms = || Family::new_with_constructor(histogram as fn() -> Histogram);
        Self {
            depth: registered(
                registry,
                "workqueue_depth",
                "Number of objects that wait to be reconciled now",
                Family::default(),
            ),
            adds: registered(
                registry,
                "workqueue_adds",
                "Total number of times an object was added",
                Family::default(),
            ),
            retries: registered(
                registry,
                "workqueue_retries",
                "Total number of times a reconciliation requested a requeue",
                Family::default(),
            ),
            waited: registered(
                registry,
                "workqueue_queue_duration_seconds",
                "Time in seconds that an object waits before it is reconciled",
                histograms(),
            ),
            worked: registered(
                registry,
                "workqueue_work_duration_seconds",
                "Time in seconds that an object is processed",
                histograms(),
            ),
            running: InProgress::register(registry),
        }
    }

    /// Returns the metrics of the queue of this name.
    pub(crate) fn of(&self, name: &str) -> QueueMetrics {
        let labels = Labels {
            name: name.to_owned(),
        };
        QueueMetrics {
            depth: self.depth.get_or_create_owned(&labels),
            adds: self.adds.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
            queue_duration: self.waited.get_or_create_owned(&labels),
            work_duration: self.worked.get_or_create_owned(&labels),
            in_progress: self.running.of(name),
        }
    }
}

#[cfg(test)]
impl Default for QueueMetrics {
    fn default() -> Self {
        Queues::register(&mut Registry::default()).of("test")
    }
}
