//! Statuses whose last write had no answer.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// UIDs of objects whose last status write had no answer, or an error. The API server may have executed it.
///
/// # Guarantees
///
/// The status of such an object is compared with the API server's own state, by the resource version, before a
/// reconciliation concludes that nothing has to be written. The cache may still have the status before the lost write; it
/// would look right, and no later event would correct it, since status changes trigger no reconciliation.
#[derive(Default)]
pub(crate) struct UnconfirmedStatuses(Mutex<BTreeSet<String>>);

impl UnconfirmedStatuses {
    /// Records that a write had no answer.
    pub(crate) fn add(&self, uid: &str) {
        self.0.lock().insert(uid.to_owned());
    }

    /// Returns true if the stored status may differ from the cached one.
    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.0.lock().contains(uid)
    }

    /// Records that the stored status is known, or that the object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}
