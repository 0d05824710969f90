//! Leadership deadline.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time until which this replica is certain to be the only leader.
///
/// # Expected flow
///
/// An operator checks it before each write to another system. A call that is sent just before the lease expires
/// could be executed concurrently with those of the next leader.
#[derive(Clone, Debug)]
pub struct Leadership {
    deadline: Arc<Mutex<Deadline>>,
}

#[derive(Clone, Copy, Debug)]
enum Deadline {
    /// There is no other candidate.
    Never,
    /// The replica is not or no longer the leader.
    Before,
    At(Instant),
}

impl Leadership {
    /// Returns a deadline that never comes: for a process without leader election.
    pub fn always() -> Self {
        Self::from(Deadline::Never)
    }

    /// Returns the deadline of a replica that is not the leader yet.
    pub fn pending() -> Self {
        Self::from(Deadline::Before)
    }

    /// Returns true if a call that takes at most this long ends before the deadline.
    pub fn outlasts(&self, call: Duration) -> bool {
        match *self.deadline.lock() {
            Deadline::Never => true,
            Deadline::Before => false,
            Deadline::At(end) => Instant::now() + call < end,
        }
    }

    pub(crate) fn extend_until(&self, end: Instant) {
        *self.deadline.lock() = Deadline::At(end);
    }

    pub(crate) fn end(&self) {
        *self.deadline.lock() = Deadline::Before;
    }
}

impl From<Deadline> for Leadership {
    fn from(ends: Deadline) -> Self {
        Self {
            deadline: Arc::new(Mutex::new(ends)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_starts_only_if_it_ends_before_the_lease_expires() {
        let call = Duration::from_secs(10);
        let leadership = Leadership::pending();
        assert!(!leadership.outlasts(call));
        leadership.extend_until(Instant::now() + Duration::from_secs(15));
        assert!(leadership.outlasts(call));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!leadership.outlasts(call));
        leadership.extend_until(Instant::now() + Duration::from_secs(15));
        assert!(leadership.outlasts(call));
        leadership.end();
        assert!(!leadership.outlasts(Duration::ZERO));
        assert!(Leadership::always().outlasts(call));
    }
}
