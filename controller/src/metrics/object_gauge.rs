//! Gauge with series of single objects.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// Gauge whose series belong to objects. A [reconciler that forgets](crate::Reconciler::forget) an object removes its series: on
/// another replica, they would have their last value for ever.
///
/// ```
/// use lockstep_controller::ObjectGauge;
///
/// let expiry = ObjectGauge::<Vec<(String, String)>>::default();
/// let labels = vec![("name".to_owned(), "orders".to_owned())];
/// expiry.set("4c6f", labels, 1_800_000_000);
/// expiry.forget("4c6f");
/// ```
#[derive(Clone, Debug)]
pub struct ObjectGauge<L: Clone + Debug + Eq + Hash> {
    family: Family<L, Gauge>,
    /// Labels of the series of each object, by UID.
    series: Arc<Mutex<HashMap<String, HashSet<L>>>>,
}

impl<L: Clone + Debug + Eq + Hash> Default for ObjectGauge<L> {
    fn default() -> Self {
        Self {
            family: Family::default(),
            series: Arc::default(),
        }
    }
}

impl<L: Clone + Debug + Eq + Hash> ObjectGauge<L> {
    /// Sets the value of a series of the object with this UID.
    pub fn set(&self, uid: &str, labels: L, value: i64) {
        self.family.get_or_create(&labels).set(value);
        let mut series = self.series.lock();
        series.entry(uid.to_owned()).or_default().insert(labels);
    }

    /// Removes the series of an object.
    pub fn forget(&self, uid: &str) {
        let series = self.series.lock().remove(uid);
        for labels in series.iter().flatten() {
            self.family.remove(labels);
        }
    }
}

impl<L: Clone + Debug + Eq + Hash + EncodeLabelSet> EncodeMetric for ObjectGauge<L> {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.family.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        self.family.metric_type()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_forgotten_object_has_no_series() {
        let mut registry = Registry::default();
        let gauge = ObjectGauge::default();
        registry.register("pods", "Pods", gauge.clone());
        let labels =
            |name: &str, state: &str| vec![("name", name.to_owned()), ("state", state.to_owned())];
        gauge.set("1", labels("a", "loaded"), 3);
        gauge.set("1", labels("a", "refused"), 1);
        gauge.set("2", labels("b", "loaded"), 2);
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).expect("text");
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(shown().len(), 3);
        gauge.forget("1");
        assert_eq!(shown(), ["pods{name=\"b\",state=\"loaded\"} 2"]);
        gauge.forget("1");
    }
}
