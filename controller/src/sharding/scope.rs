//! Shards of one controller: those whose objects its watches have listed.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::sharding::held_shards::{ShardPermit, Shards};

/// Watch whose objects are limited to the held shards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShardedWatch {
    /// The reconciled objects.
    Parents,
    /// Their children of the type with this index.
    Children(usize),
    /// Their children of the type with this index in one namespace.
    ChildrenIn(usize, String),
}

/// Shards of one controller.
///
/// # Guarantees
///
/// No object of a shard is reconciled before all watches have listed the objects of the shard: a missing child may merely
/// not have arrived yet.
pub(crate) struct ShardScope {
    shards: Shards,
    /// Number of the acquisition up to which each watch has listed the objects.
    listed: Mutex<BTreeMap<ShardedWatch, u64>>,
    /// Number of the acquisition up to which all watches have. It never falls.
    ready: watch::Sender<u64>,
}

impl ShardScope {
    pub(crate) fn new(shards: Shards) -> Self {
        Self {
            shards,
            listed: Mutex::default(),
            ready: watch::Sender::default(),
        }
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Returns the number of the acquisition up to which objects are reconciled.
    pub(crate) fn ready(&self) -> watch::Receiver<u64> {
        self.ready.subscribe()
    }

    /// Begins a reconciliation of an object, if that is possible now.
    pub(crate) fn permit(&self, uid: &str) -> Option<ShardPermit> {
        let ready = *self.ready.borrow();
        self.shards.permit(uid, ready)
    }

    /// Records that a watch starts. Objects of shards that are acquired later wait for its list.
    pub(crate) fn start_watch(&self, watch: ShardedWatch) {
        let ready = *self.ready.borrow();
        self.listed.lock().insert(watch, ready);
    }

    /// Records that a watch has listed the objects of all shards up to an acquisition, or has failed: the owners of its
    /// objects know.
    pub(crate) fn set_listed(&self, watch: &ShardedWatch, acquisition: u64) {
        let mut listed = self.listed.lock();
        if let Some(of_watch) = listed.get_mut(watch) {
            *of_watch = acquisition.max(*of_watch);
        }
        self.update_ready(&listed);
    }

    /// Records that a watch has ended.
    pub(crate) fn end_watch(&self, watch: &ShardedWatch) {
        let mut listed = self.listed.lock();
        listed.remove(watch);
        self.update_ready(&listed);
    }

    fn update_ready(&self, listed: &BTreeMap<ShardedWatch, u64>) {
        let of_all = listed.values().min().copied().unwrap_or_default();
        self.ready.send_if_modified(|ready| {
            let rises = of_all > *ready;
            *ready = of_all.max(*ready);
            rises
        });
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn a_shard_is_ready_when_all_watches_have_listed_its_objects() {
        let scope = ShardScope::new(Shards::new(NonZeroU32::MIN));
        let ready = scope.ready();
        let (parents, children) = (ShardedWatch::Parents, ShardedWatch::Children(0));
        let of_namespace = ShardedWatch::ChildrenIn(1, "a".to_owned());
        scope.start_watch(parents.clone());
        scope.start_watch(children.clone());
        scope.set_listed(&parents, 1);
        assert_eq!(*ready.borrow(), 0, "the children are missing");
        scope.set_listed(&children, 1);
        assert_eq!(*ready.borrow(), 1);
        // Objects of earlier acquisitions are not held back by a watch that starts later.
        scope.start_watch(of_namespace.clone());
        assert_eq!(*ready.borrow(), 1);
        scope.set_listed(&parents, 3);
        scope.set_listed(&children, 2);
        assert_eq!(*ready.borrow(), 1, "the namespace is not listed");
        scope.set_listed(&of_namespace, 3);
        assert_eq!(*ready.borrow(), 2);
        scope.set_listed(&children, 3);
        assert_eq!(*ready.borrow(), 3);
        scope.start_watch(of_namespace.clone());
        scope.set_listed(&parents, 4);
        scope.set_listed(&children, 4);
        assert_eq!(*ready.borrow(), 3);
        scope.end_watch(&of_namespace);
        assert_eq!(*ready.borrow(), 4, "nothing waits for an ended watch");
    }
}
