//! Deletions that do not come to their end.

use std::time::Duration;

/// What becomes of an object whose deletion does not come to its end.
#[derive(Clone, Copy, Debug)]
pub struct Stalls {
    /// When it is told, by a condition and an Event.
    pub told_after: Duration,
    /// When the object is let go although its cleanup is not done: what it stood for is left behind, and told
    /// by an Event and a line of the log. Never, without it.
    pub let_go_after: Option<Duration>,
}

impl Default for Stalls {
    fn default() -> Self {
        Self {
            told_after: Duration::from_hours(1),
            let_go_after: None,
        }
    }
}
