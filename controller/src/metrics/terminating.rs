//! Objects that are being deleted, by how long.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// What is counted: those that have been so for longer than this, in seconds.
const LONGER_THAN: [(i64, &str); 4] = [(0, "0s"), (600, "10m"), (3_600, "1h"), (86_400, "24h")];

/// The objects that are kept by our finalizer while they are being deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terminating {
    since: Arc<Mutex<HashMap<String, (String, Timestamp)>>>,
}

impl Terminating {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let terminating = Self::default();
        registry.register_collector(Box::new(terminating.clone()));
        terminating
    }

    pub(crate) fn set(&self, controller: &str, uid: &str, since: Timestamp) {
        let of = (controller.to_owned(), since);
        self.since().insert(uid.to_owned(), of);
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.since().remove(uid);
    }

    pub(crate) fn clear(&self) {
        self.since().clear();
    }

    fn since(&self) -> MutexGuard<'_, HashMap<String, (String, Timestamp)>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Terminating {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let now = Timestamp::now();
        let since = self.since();
        let controllers: BTreeSet<_> = since.values().map(|(controller, _)| controller).collect();
        if controllers.is_empty() {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(
            "lockstep_terminating_objects",
            "Objects that are being deleted and still carry our finalizer, by how long",
            None,
            MetricType::Gauge,
        )?;
        for controller in controllers {
            for (seconds, name) in LONGER_THAN {
                let is_counted = |(of, since): &&(String, Timestamp)| {
                    of == controller && now.as_second() - since.as_second() >= seconds
                };
                let count = since.values().filter(is_counted).count();
                let labels = [("controller", controller.as_str()), ("longer_than", name)];
                let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
                gauge.encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn objects_are_counted_by_how_long_they_have_been_going() {
        let mut registry = Registry::default();
        let terminating = Terminating::register(&mut registry);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("metrics");
            text
        };
        assert!(!text().contains("terminating"), "{}", text());
        let now = Timestamp::now().as_second();
        for (uid, ago) in [("a", 5), ("b", 700), ("c", 90_000)] {
            let since = Timestamp::from_second(now - ago).expect("a time");
            terminating.set("toy", uid, since);
        }
        for (longer_than, count) in [("0s", 3), ("10m", 2), ("1h", 1), ("24h", 1)] {
            let line = format!(
                "lockstep_terminating_objects{{controller=\"toy\",longer_than=\"{longer_than}\"}} {count}"
            );
            assert!(text().contains(&line), "{line} is missing in {}", text());
        }
        for uid in ["a", "b", "c"] {
            terminating.forget(uid);
        }
        assert!(!text().contains("terminating"), "{}", text());
    }
}
