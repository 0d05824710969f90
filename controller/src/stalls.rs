//! Deletions that take too long.

use std::time::Duration;

/// Time limits for the deletion of an object.
#[derive(Clone, Copy, Debug)]
pub struct Stalls {
    /// Time after which a deletion is reported as stalled, by a condition and an Event.
    pub told_after: Duration,
    /// Time after which the finalizer is removed although the cleanup has not finished. The external resources are
    /// then left behind; an Event and a log message report them. If unset, this never happens.
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
