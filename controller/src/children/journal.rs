//! What a round does to the children of its object.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::DynamicObject;

use super::observed::{ChildMap, Place};

/// What one round has come to know of children since it began.
#[derive(Default)]
pub(crate) struct AppliedChanges {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// As they last were.
    children: ChildMap,
    has_written: bool,
    has_missed: bool,
}

impl AppliedChanges {
    /// Takes a child as it is.
    pub(super) fn record_found(&self, place: &Place, child: DynamicObject) {
        self.state().take(place, child);
    }

    /// Takes a child as it has been written.
    pub(super) fn record_write(&self, place: &Place, child: DynamicObject) {
        let mut state = self.state();
        state.take(place, child);
        state.has_written = true;
    }

    /// Takes that something has happened to a child that the round knows nothing of.
    pub(super) fn record_missed(&self) {
        self.state().has_missed = true;
    }

    pub(crate) fn has_written(&self) -> bool {
        self.state().has_written
    }

    pub(crate) fn has_missed(&self) -> bool {
        self.state().has_missed
    }

    /// The children as they are now, of those that there were.
    pub(crate) fn children_after(&self, before: &ChildMap) -> ChildMap {
        let mut now = before.clone();
        let state = self.state();
        let since = state.children.iter();
        now.extend(since.map(|(place, child)| (place.clone(), Arc::clone(child))));
        now
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, place: &Place, child: DynamicObject) {
        self.children.insert(place.clone(), Arc::new(child));
    }
}
