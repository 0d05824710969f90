//! Deletions that take too long.

use std::time::Duration;

/// Time limits for the deletion of an object.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::DeletionTimeouts;
///
/// let timeouts = DeletionTimeouts {
///     stalled_after: Duration::from_mins(10),
///     ..DeletionTimeouts::default()
/// };
/// assert_eq!(timeouts.force_after, None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeletionTimeouts {
    /// Time after which a deletion is reported as stalled, by a condition and an Event.
    pub stalled_after: Duration,
    /// Time after which the finalizer is removed although the cleanup has not finished. The external resources are
    /// then left behind; an Event and a log message report them. If unset, this never happens.
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
