//! Changes that a reconciliation makes to the children of its object.

use std::sync::Arc;

use kube::api::DynamicObject;
use parking_lot::Mutex;

use crate::children::cache::ChildMap;
use crate::children::key::ChildKey;

/// Changes of the children that one reconciliation knows of since it began.
#[derive(Default)]
pub(crate) struct AppliedChanges {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Latest states.
    children: ChildMap,
    has_written: bool,
    has_missed: bool,
}

impl AppliedChanges {
    /// Records the current state of a child.
    pub(crate) fn record_found(&self, key: &ChildKey, child: DynamicObject) {
        self.state.lock().take(key, child);
    }

    /// Records a child that was written.
    pub(crate) fn record_write(&self, key: &ChildKey, child: DynamicObject) {
        let mut state = self.state.lock();
        state.take(key, child);
        state.has_written = true;
    }

    /// Records that a child has changed in a way that the reconciliation has not seen.
    pub(crate) fn record_missed(&self) {
        self.state.lock().has_missed = true;
    }

    pub(crate) fn has_written(&self) -> bool {
        self.state.lock().has_written
    }

    pub(crate) fn has_missed(&self) -> bool {
        self.state.lock().has_missed
    }

    /// Returns the current children, given those at the beginning.
    pub(crate) fn children_after(&self, before: &ChildMap) -> ChildMap {
        let mut now = before.clone();
        let state = self.state.lock();
        let since = state.children.iter();
        now.extend(since.map(|(key, child)| (key.clone(), Arc::clone(child))));
        now
    }
}

impl State {
    fn take(&mut self, key: &ChildKey, child: DynamicObject) {
        self.children.insert(key.clone(), Arc::new(child));
    }
}
