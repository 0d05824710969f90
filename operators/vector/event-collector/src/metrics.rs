//! Metrics, with the names of those of the event collector of kaasops.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Source and namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    service: String,
    namespace: String,
}

/// Numbers of events of all receivers.
#[derive(Clone, Default)]
pub(crate) struct Metrics {
    handled: Family<Labels, Counter>,
    skipped: Family<Labels, Counter>,
    processed: Family<Labels, Counter>,
    rejected: Family<Labels, Counter>,
}

/// Numbers of events of one receiver.
pub(crate) struct ReceiverMetrics {
    pub(crate) handled: Counter,
    pub(crate) skipped: Counter,
    pub(crate) processed: Counter,
    pub(crate) rejected: Counter,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, family) in [
            (
                "handled_events",
                "Number of Events that were read",
                &metrics.handled,
            ),
            (
                "skipped_events",
                "Number of Events from before the start that were not sent",
                &metrics.skipped,
            ),
            (
                "processed_events",
                "Number of Events that Vector has accepted",
                &metrics.processed,
            ),
            (
                "rejected_events",
                "Number of Events that Vector has rejected for good",
                &metrics.rejected,
            ),
        ] {
            registry.register(format!("event_collector_{name}"), help, family.clone());
        }
        metrics
    }

    pub(crate) fn receiver(&self, service: &str, namespace: &str) -> ReceiverMetrics {
        let labels = Labels {
            service: service.to_owned(),
            namespace: namespace.to_owned(),
        };
        let counter = |family: &Family<Labels, Counter>| family.get_or_create(&labels).clone();
        ReceiverMetrics {
            handled: counter(&self.handled),
            skipped: counter(&self.skipped),
            processed: counter(&self.processed),
            rejected: counter(&self.rejected),
        }
    }

    /// Removes the numbers of a receiver.
    pub(crate) fn remove(&self, service: &str, namespace: &str) {
        let labels = Labels {
            service: service.to_owned(),
            namespace: namespace.to_owned(),
        };
        for family in [
            &self.handled,
            &self.skipped,
            &self.processed,
            &self.rejected,
        ] {
            family.remove(&labels);
        }
    }
}
