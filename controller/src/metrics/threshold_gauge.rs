//! Number of objects above a threshold: one series for each threshold, however many objects there are.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Definition of a metric that counts objects.
#[derive(Debug)]
pub(crate) struct ThresholdSpec {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    bounds: &'static [(i64, &'static str)],
    /// Computes the number to compare with the thresholds from the number that was set.
    value: fn(i64) -> i64,
}

/// Objects that are being deleted. The number of an object is the start of its deletion, in seconds since the
/// epoch.
pub(crate) const TERMINATING: ThresholdSpec = ThresholdSpec {
    name: "lockstep_terminating_objects",
    help: "Number of objects that are being deleted and still have our finalizer, by the time since the deletion began",
    label: "threshold",
    bounds: &[(0, "0s"), (600, "10m"), (3_600, "1h"), (86_400, "24h")],
    value: |since| Timestamp::now().as_second() - since,
};

/// Objects whose reconciliation fails. The number of an object is that of its consecutive failures.
pub(crate) const FAILING: ThresholdSpec = ThresholdSpec {
    name: "lockstep_failing_objects",
    help: "Number of objects whose reconciliation fails, by the number of consecutive failures",
    label: "threshold",
    bounds: &[(1, "1"), (3, "3"), (10, "10")],
    value: |failures| failures,
};

/// Controller and number of each object, by UID.
type Known = HashMap<String, (String, i64)>;

/// Counts objects by a number of each object.
#[derive(Clone, Debug)]
pub(crate) struct ThresholdGauge {
    counted: &'static ThresholdSpec,
    by_uid: Arc<Mutex<Known>>,
}

impl ThresholdGauge {
    pub(crate) fn register(counted: &'static ThresholdSpec, registry: &mut Registry) -> Self {
        let objects = Self {
            counted,
            by_uid: Arc::default(),
        };
        registry.register_collector(Box::new(objects.clone()));
        objects
    }

    pub(crate) fn set(&self, controller: &str, uid: &str, number: i64) {
        let of = (controller.to_owned(), number);
        self.by_uid.lock().insert(uid.to_owned(), of);
    }

    pub(crate) fn add(&self, controller: &str, uid: &str) {
        let mut by_uid = self.by_uid.lock();
        let zero = || (controller.to_owned(), 0);
        by_uid.entry(uid.to_owned()).or_insert_with(zero).1 += 1;
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.by_uid.lock().remove(uid);
    }

    pub(crate) fn clear(&self) {
        self.by_uid.lock().clear();
    }
}

impl Collector for ThresholdGauge {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let ThresholdSpec {
            name,
            help,
            label,
            bounds,
            value,
        } = self.counted;
        let by_uid = self.by_uid.lock();
        let controllers: BTreeSet<_> = by_uid.values().map(|(controller, _)| controller).collect();
        if controllers.is_empty() {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for controller in controllers {
            for (bound, shown) in *bounds {
                let is_counted =
                    |(of, number): &&(String, i64)| of == controller && value(*number) >= *bound;
                let count = by_uid.values().filter(is_counted).count();
                let labels = [("controller", controller.as_str()), (*label, *shown)];
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

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).expect("metrics");
        text
    }

    fn counts(registry: &Registry, label: &str, expected: &[(&str, i64)]) {
        let text = text(registry);
        for (bound, count) in expected {
            let line = format!("{{controller=\"toy\",{label}=\"{bound}\"}} {count}");
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn objects_are_counted_by_the_duration_of_their_deletion() {
        let mut registry = Registry::default();
        let terminating = ThresholdGauge::register(&TERMINATING, &mut registry);
        assert!(
            !text(&registry).contains("terminating"),
            "no object is known"
        );
        let now = Timestamp::now().as_second();
        for (uid, ago) in [("a", 5), ("b", 700), ("c", 90_000)] {
            terminating.set("toy", uid, now - ago);
        }
        let expected = [("0s", 3), ("10m", 2), ("1h", 1), ("24h", 1)];
        counts(&registry, "threshold", &expected);
        for uid in ["a", "b", "c"] {
            terminating.forget(uid);
        }
        assert!(
            !text(&registry).contains("terminating"),
            "no object is left"
        );
    }

    #[test]
    fn objects_are_counted_by_the_number_of_their_failures() {
        let mut registry = Registry::default();
        let failing = ThresholdGauge::register(&FAILING, &mut registry);
        for (uid, times) in [("a", 1), ("b", 3), ("c", 12)] {
            for _ in 0..times {
                failing.add("toy", uid);
            }
        }
        counts(&registry, "threshold", &[("1", 3), ("3", 2), ("10", 1)]);
        failing.forget("c");
        counts(&registry, "threshold", &[("1", 2), ("3", 1), ("10", 0)]);
    }
}
