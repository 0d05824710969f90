//! Keys that are being processed, with client-go's metric names.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// Start times by the number of the hand-out.
type Since = HashMap<u64, Instant>;

/// Keys that all queues have handed out.
#[derive(Clone, Debug, Default)]
pub(crate) struct InProgress {
    by_queue: Arc<Mutex<BTreeMap<String, Since>>>,
}

/// Keys that one queue has handed out.
#[derive(Clone)]
pub(crate) struct QueueInProgress {
    all: InProgress,
    queue: String,
}

impl InProgress {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        registry.register_collector(Box::new(all.clone()));
        all
    }

    pub(crate) fn of(&self, queue: &str) -> QueueInProgress {
        self.by_queue.lock().entry(queue.to_owned()).or_default();
        QueueInProgress {
            all: self.clone(),
            queue: queue.to_owned(),
        }
    }
}

impl QueueInProgress {
    pub(crate) fn start(&self, number: u64, at: Instant) {
        let mut by_queue = self.all.by_queue.lock();
        by_queue
            .entry(self.queue.clone())
            .or_default()
            .insert(number, at);
    }

    pub(crate) fn finish(&self, number: u64) {
        if let Some(since) = self.all.by_queue.lock().get_mut(&self.queue) {
            since.remove(&number);
        }
    }
}

impl Collector for InProgress {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let by_queue = self.by_queue.lock();
        if by_queue.is_empty() {
            return Ok(());
        }
        let seconds = |since: &Since| -> Vec<f64> {
            since
                .values()
                .map(|since| since.elapsed().as_secs_f64())
                .collect()
        };
        let mut write = |name, help, value: fn(&[f64]) -> f64| {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (queue, since) in &*by_queue {
                let gauge = ConstGauge::new(value(&seconds(since)));
                let labels = [("name", queue.as_str())];
                gauge.encode(metric.encode_family(&labels)?)?;
            }
            Ok(())
        };
        write(
            "workqueue_unfinished_work_seconds",
            "Total time in seconds that the keys being processed have taken so far",
            |all| all.iter().sum(),
        )?;
        write(
            "workqueue_longest_running_processor_seconds",
            "Time in seconds that the longest processing of a key has taken so far",
            |all| all.iter().copied().fold(0.0, f64::max),
        )
    }
}
