//! Prometheus metrics of the events of RDS.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Number of received events, by result: `handled` if the object of the instance was reconciled, `ignored` if no object has
/// the instance, `invalid` if the message is no event, and `abandoned` if the object was not reconciled in spite of
/// several deliveries.
pub type RdsEvents = Family<RdsEventLabels, Counter>;

/// Labels of [`RDS_EVENTS`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RdsEventLabels {
    result: &'static str,
}

/// Name of the metric, without the suffix of counters.
pub const RDS_EVENTS: &str = "lockstep_rds_events";

/// Help text of the metric.
pub const RDS_EVENTS_HELP: &str = "Total number of events of RDS received from the queue by result: handled, ignored (no object has the instance), invalid (no event), abandoned (its object is not reconciled)";

/// Number of failed calls to the queue, by operation.
pub type RdsEventsQueueErrors = Family<QueueErrorLabels, Counter>;

/// Labels of [`RDS_EVENTS_QUEUE_ERRORS`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueueErrorLabels {
    operation: &'static str,
}

/// Name of the metric, without the suffix of counters.
pub const RDS_EVENTS_QUEUE_ERRORS: &str = "lockstep_rds_events_queue_errors";

/// Help text of the metric.
pub const RDS_EVENTS_QUEUE_ERRORS_HELP: &str =
    "Total number of failed calls to the queue of the events of RDS by operation";

/// Gauge of a queue. It has a value only on the leader, and only if a queue is configured.
pub type RdsEventsGauge<N, A> = Family<QueueLabels, Gauge<N, A>>;

/// Labels of [`RdsEventsGauge`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueueLabels {
    queue: String,
}

impl QueueLabels {
    pub(crate) fn of(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
        }
    }
}

/// Name of the metric that is 1 while events are received, and 0 otherwise.
pub const RDS_EVENTS_RECEIVING: &str = "lockstep_rds_events_receiving";

/// Help text of the metric.
pub const RDS_EVENTS_RECEIVING_HELP: &str = "1 if the leader receives the events of RDS from the queue, 0 if the queue fails and RDS is polled at the usual interval";

/// Name of the metric with the age of the oldest event of the batch that was handled last.
pub const RDS_EVENTS_OLDEST_AGE: &str = "lockstep_rds_events_oldest_age_seconds";

/// Help text of the metric.
pub const RDS_EVENTS_OLDEST_AGE_HELP: &str = "Age of the oldest event of RDS in the batch that was handled last, at the end of the reconciliation of its object; 0 if the queue is empty";

/// Labels of [`RDS_EVENTS_LAST`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct LocationLabels {
    account_id: String,
    region: String,
}

impl LocationLabels {
    pub(crate) fn of(account_id: &str, region: &str) -> Self {
        Self {
            account_id: account_id.to_owned(),
            region: region.to_owned(),
        }
    }
}

/// Name of the metric with the times of the last events.
pub const RDS_EVENTS_LAST: &str = "lockstep_rds_events_last_timestamp_seconds";

/// Help text of the metric.
pub const RDS_EVENTS_LAST_HELP: &str = "Time at which the leader received the last event of an instance of an AWS account and region, in seconds since 1970; instances elsewhere are polled at the usual interval";

/// Metrics of the events of RDS.
#[derive(Clone, Debug, Default)]
pub struct RdsEventsMetrics {
    /// [`RDS_EVENTS`].
    pub events: RdsEvents,
    /// [`RDS_EVENTS_QUEUE_ERRORS`].
    pub queue_errors: RdsEventsQueueErrors,
    /// [`RDS_EVENTS_RECEIVING`].
    pub receiving: RdsEventsGauge<i64, AtomicI64>,
    /// [`RDS_EVENTS_OLDEST_AGE`].
    pub oldest_age: RdsEventsGauge<f64, AtomicU64>,
    /// [`RDS_EVENTS_LAST`].
    pub last_event: Family<LocationLabels, Gauge>,
}

impl RdsEventsMetrics {
    /// Counts messages with a result.
    pub(crate) fn count(&self, result: &'static str, messages: usize) {
        let labels = RdsEventLabels { result };
        let messages = u64::try_from(messages).unwrap_or(u64::MAX);
        self.events.get_or_create(&labels).inc_by(messages);
    }

    /// Counts a failed call.
    pub(crate) fn count_error(&self, operation: &'static str) {
        let labels = QueueErrorLabels { operation };
        self.queue_errors.get_or_create(&labels).inc();
    }
}
