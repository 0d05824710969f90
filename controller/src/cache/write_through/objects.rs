//! Writes of reconciliations to the objects themselves, until the watch delivers them.

use std::collections::HashMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use parking_lot::Mutex;

use crate::cache::object_key::ObjectKey;
use crate::cache::store::Store;
use crate::dynamic_object::{is_later, set_type_meta};
use crate::field_manager::FieldManager;

/// Latest written states of objects, by UID.
///
/// # Guarantees
///
/// A reconciliation never sees an object in a state before the write of an earlier reconciliation: it would repeat
/// the write, which then fails with a conflict. An exception is a watch that restarts at an API server which lags behind the
/// one that has delivered the write.
pub(crate) struct PendingWrites {
    resource: ApiResource,
    manager: FieldManager,
    /// Objects that the watch has delivered.
    delivered: Store,
    by_uid: Mutex<HashMap<String, Arc<DynamicObject>>>,
}

impl PendingWrites {
    pub(crate) fn new(resource: ApiResource, manager: FieldManager) -> Self {
        Self {
            resource,
            manager,
            delivered: Store::default(),
            by_uid: Mutex::default(),
        }
    }

    /// Returns the objects that the watch has delivered, which its intake stores.
    pub(crate) fn delivered(&self) -> &Store {
        &self.delivered
    }

    /// Records a write, unless the watch has delivered it before the response: then no event would prune it.
    pub(crate) fn record(&self, mut object: DynamicObject) {
        set_type_meta(&mut object, &self.resource, &self.manager);
        let Some(uid) = object.uid() else {
            return;
        };
        // The intake prunes with the same lock, after it has stored an object.
        let mut by_uid = self.by_uid.lock();
        let delivered = self.delivered.get(&ObjectKey::of(&object));
        if delivered.is_some_and(|delivered| delivered.is_at_least(&object)) {
            by_uid.remove(&uid);
        } else {
            by_uid.insert(uid, Arc::new(object));
        }
    }

    /// Returns the later of the state that the watch delivered and the written one. A written state that is not
    /// later is removed.
    pub(crate) fn resolve_and_prune(&self, stored: Arc<DynamicObject>) -> Arc<DynamicObject> {
        let Some(uid) = stored.uid() else {
            return stored;
        };
        let mut by_uid = self.by_uid.lock();
        match by_uid.get(&uid) {
            Some(written) if is_later(written, &stored) => Arc::clone(written),
            _ => {
                by_uid.remove(&uid);
                stored
            }
        }
    }

    /// Removes an object that no longer exists.
    pub(crate) fn forget(&self, uid: &str) {
        self.by_uid.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;

    fn object(version: &str) -> DynamicObject {
        let metadata = json!({"name": "a", "uid": "1", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata})).expect("an object")
    }

    #[test]
    fn a_write_is_visible_until_the_watch_delivers_it() {
        let gvk = GroupVersionKind::gvk("g", "v1", "K");
        let written =
            PendingWrites::new(ApiResource::from_gvk(&gvk), FieldManager::new("lockstep"));
        let seen = |version| {
            let seen = written.resolve_and_prune(Arc::new(object(version)));
            seen.resource_version().unwrap_or_default()
        };
        written.record(object("10"));
        assert_eq!(seen("9"), "10");
        assert_eq!(seen("10"), "10");
        assert!(written.by_uid.lock().is_empty(), "no entry is left");
        assert_eq!(seen("9"), "9");
    }

    #[test]
    fn a_write_that_the_watch_delivers_before_the_response_is_not_kept() {
        let gvk = GroupVersionKind::gvk("g", "v1", "K");
        let written =
            PendingWrites::new(ApiResource::from_gvk(&gvk), FieldManager::new("lockstep"));
        let is_kept = |version: &str, delivered: &str| {
            let store = written.delivered();
            let delivered = object(delivered);
            store.put(ObjectKey::of(&delivered), store.compress(&delivered));
            written.record(object(version));
            !written.by_uid.lock().is_empty()
        };
        assert!(is_kept("10", "9"));
        assert!(!is_kept("10", "10"));
        assert!(!is_kept("10", "11"));
    }
}
