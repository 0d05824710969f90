//! Deletions that do not come to their end.

use std::time::Duration;

/// What becomes of an object whose deletion does not come to its end.
#[derive(Clone, Copy, Debug)]
pub struct DeletionTimeouts {
    /// When it is told, by a condition and an Event.
    pub stalled_after: Duration,
    /// When the object is let go although its cleanup is not done: what it stood for is left behind, and told
    /// by an Event and a line of the log. Never, without it.
    pub force_after: Option<Duration>,
}

impl Default for DeletionTimeouts {
    fn default() -> Self {
        Self {
            stalled_after: Duration::from_hours(1),
            force_after: None,
        }
    }
}
