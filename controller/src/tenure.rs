//! Until when a replica may be sure that no other one leads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long this replica may go on as the leader.
///
/// # Expected flow
///
/// An operator asks it before each write to another system. A call that is sent just before the lease expires
/// could be carried out beside those of the next leader.
#[derive(Clone, Debug)]
pub struct Leadership {
    ends: Arc<Mutex<Ends>>,
}

#[derive(Clone, Copy, Debug)]
enum Ends {
    /// Nobody else could lead.
    Never,
    /// It has not begun, or is over.
    Before,
    At(Instant),
}

impl Leadership {
    /// One that does not end: where there is no election.
    pub fn always() -> Self {
        Self::from(Ends::Never)
    }

    /// One that has not begun.
    pub fn pending() -> Self {
        Self::from(Ends::Before)
    }

    /// Whether a call that ends after this time at the latest ends within it.
    pub fn outlasts(&self, call: Duration) -> bool {
        match *self.ends() {
            Ends::Never => true,
            Ends::Before => false,
            Ends::At(end) => Instant::now() + call < end,
        }
    }

    pub(crate) fn extend_until(&self, end: Instant) {
        *self.ends() = Ends::At(end);
    }

    pub(crate) fn end(&self) {
        *self.ends() = Ends::Before;
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Ends> for Leadership {
    fn from(ends: Ends) -> Self {
        Self {
            ends: Arc::new(Mutex::new(ends)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_begins_only_if_it_ends_before_the_lease() {
        let call = Duration::from_secs(10);
        let tenure = Leadership::pending();
        assert!(!tenure.outlasts(call));
        tenure.extend_until(Instant::now() + Duration::from_secs(15));
        assert!(tenure.outlasts(call));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(!tenure.outlasts(call));
        tenure.extend_until(Instant::now() + Duration::from_secs(15));
        assert!(tenure.outlasts(call));
        tenure.end();
        assert!(!tenure.outlasts(Duration::ZERO));
        assert!(Leadership::always().outlasts(call));
    }
}
