//! State of the reception of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// True while this replica receives events. It is shared by its clones.
///
/// # Guarantees
///
/// A replica that does not lead receives no events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventsHealth(Arc<AtomicBool>);

impl EventsHealth {
    /// Returns true if events are received.
    pub(crate) fn is_receiving(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Records if events are received. Returns true if that has changed.
    pub(crate) fn set(&self, is_receiving: bool) -> bool {
        self.0.swap(is_receiving, Ordering::SeqCst) != is_receiving
    }
}
