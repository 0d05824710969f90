//! Number of objects that make no progress until something is changed, by reason.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::registration::registered;

/// Objects with the condition `Stalled`.
#[derive(Clone)]
pub(crate) struct StalledObjects {
    objects: Family<Labels, Gauge>,
    by_uid: Arc<Mutex<HashMap<String, Labels>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    controller: String,
    reason: String,
}

impl StalledObjects {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let objects = registered(
            registry,
            "lockstep_stalled_objects",
            "Number of objects with the condition Stalled, by its reason",
            Family::default(),
        );
        Self {
            objects,
            by_uid: Arc::default(),
        }
    }

    /// Sets the reason of an object's condition; `None` if the object does not have the condition.
    pub(crate) fn set(&self, controller: &str, uid: &str, reason: Option<&str>) {
        let now = reason.map(|reason| Labels {
            controller: controller.to_owned(),
            reason: reason.to_owned(),
        });
        let mut by_uid = self.by_uid.lock();
        if by_uid.get(uid) == now.as_ref() {
            return;
        }
        if let Some(before) = by_uid.remove(uid) {
            self.objects.get_or_create(&before).dec();
        }
        if let Some(now) = now {
            self.objects.get_or_create(&now).inc();
            by_uid.insert(uid.to_owned(), now);
        }
    }

    /// Removes an object that no longer exists.
    pub(crate) fn forget(&self, uid: &str) {
        self.set("", uid, None);
    }

    /// Removes all objects.
    pub(crate) fn clear(&self) {
        self.by_uid.lock().clear();
        self.objects.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(stalled: &StalledObjects, reason: &str) -> i64 {
        let labels = Labels {
            controller: "toy".to_owned(),
            reason: reason.to_owned(),
        };
        stalled.objects.get_or_create(&labels).get()
    }

    #[test]
    fn each_object_is_counted_once_under_its_latest_reason() {
        let stalled = StalledObjects::register(&mut Registry::default());
        stalled.set("toy", "a", Some("Invalid"));
        stalled.set("toy", "a", Some("Invalid"));
        stalled.set("toy", "b", Some("Invalid"));
        assert_eq!(count(&stalled, "Invalid"), 2);
        stalled.set("toy", "b", Some("RegionMismatch"));
        assert_eq!(count(&stalled, "Invalid"), 1);
        assert_eq!(count(&stalled, "RegionMismatch"), 1);
        stalled.set("toy", "a", None);
        stalled.forget("b");
        stalled.forget("unknown");
        assert_eq!(count(&stalled, "Invalid"), 0);
        assert_eq!(count(&stalled, "RegionMismatch"), 0);
    }
}
