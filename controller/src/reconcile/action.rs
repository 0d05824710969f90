//! Result of a reconciliation.

use std::time::Duration;

/// Result of a reconciliation: when the object is reconciled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// After the next change of the object.
    AwaitChange,
    /// After this time, or after an earlier change.
    RequeueAfter(Duration),
    /// After this time, or after an earlier change, because the reconciliation failed.
    Backoff(Duration),
}

impl Action {
    /// Returns the same action, after this time at the latest.
    pub(crate) fn within(self, limit: Duration) -> Self {
        match self {
            Self::AwaitChange => Self::RequeueAfter(limit),
            Self::RequeueAfter(after) => Self::RequeueAfter(after.min(limit)),
            Self::Backoff(after) => Self::Backoff(after.min(limit)),
        }
    }
}
