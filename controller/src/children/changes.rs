//! Changes that a reconciliation makes to the children of its object.

use std::borrow::Cow;
use std::sync::Arc;

use kube::api::DynamicObject;

use crate::cache::write_through::children::ChildMap;
use crate::children::key::ChildKey;

/// Changes of the children that one reconciliation knows of since it began.
#[derive(Debug, Default)]
pub(crate) struct AppliedChanges {
    /// Latest states.
    children: ChildMap,
    has_written: bool,
    has_missed: bool,
}

impl AppliedChanges {
    /// Records the current state of a child.
    pub(crate) fn record_found(&mut self, key: &ChildKey, child: DynamicObject) {
        self.children.insert(key.clone(), Arc::new(child));
    }

    /// Records a child that was written.
    pub(crate) fn record_write(&mut self, key: &ChildKey, child: DynamicObject) {
        self.record_found(key, child);
        self.has_written = true;
    }

    /// Records that a child has changed in a way that the reconciliation has not seen.
    pub(crate) fn record_missed(&mut self) {
        self.has_missed = true;
    }

    /// Returns true if a child has changed in a way that the reconciliation has not seen.
    #[cfg(test)]
    pub(crate) fn has_missed(&self) -> bool {
        self.has_missed
    }

    /// Returns true if the result of the reconciliation was computed from children that have changed since. No watch
    /// event reports that, since the writes of a reconciliation trigger no other one. Without a change that the
    /// reconciliation has missed, the answer depends on whether the operator has read the children.
    pub(crate) fn outdate_result(&self, reads_children: bool) -> bool {
        self.has_missed || reads_children && self.has_written
    }

    /// Returns the current children, given those at the beginning.
    pub(crate) fn children_after<'a>(&self, before: &'a ChildMap) -> Cow<'a, ChildMap> {
        if self.children.is_empty() {
            return Cow::Borrowed(before);
        }
        let mut now = before.clone();
        let since = self.children.iter();
        now.extend(since.map(|(key, child)| (key.clone(), Arc::clone(child))));
        Cow::Owned(now)
    }
}
