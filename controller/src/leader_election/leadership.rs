//! Leadership deadline.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task_local;
use tokio::time::Instant;

task_local! {
    /// Deadline of the object that this task reconciles, or of the leader whose work it is.
    static OF_TASK: Leadership;
}

/// Time until which this replica is certain to be the only leader.
///
/// # Expected flow
///
/// An operator checks it before each write to another system. A call that is sent just before the lease expires
/// could be executed concurrently with those of the next leader.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::{Leadership, ReconcileError};
///
/// /// Longest time that a call takes.
/// const DEADLINE: Duration = Duration::from_secs(5);
///
/// /// Returns an error if another replica may lead before a call ends.
/// fn must_lead(leadership: &Leadership) -> Result<(), ReconcileError> {
///     if leadership.outlasts(DEADLINE) {
///         return Ok(());
///     }
///     Err(ReconcileError::Transient {
///         reason: "NotLeading",
///         message: "another replica is or becomes the leader".to_owned(),
///     })
/// }
///
/// assert!(must_lead(&Leadership::always()).is_ok());
/// assert!(must_lead(&Leadership::pending()).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Leadership(Source);

#[derive(Clone, Debug)]
enum Source {
    One(Arc<Mutex<Deadline>>),
    /// The earlier of two deadlines.
    Both(Arc<[Leadership; 2]>),
    /// The deadline of the current task.
    OfTask,
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

    /// Returns the deadline of the shard whose object is being reconciled, for replicas that share the objects. Outside of
    /// reconciliations and of the work of the leader, it has always passed.
    ///
    /// # Assumptions
    ///
    /// It is checked in the task of the reconciliation, and not in one that the reconciliation has spawned.
    pub fn of_reconciliation() -> Self {
        Self(Source::OfTask)
    }

    /// Returns true if a call that takes at most this long ends before the deadline.
    pub fn outlasts(&self, call: Duration) -> bool {
        match &self.0 {
            Source::One(deadline) => match *deadline.lock() {
                Deadline::Never => true,
                Deadline::Before => false,
                Deadline::At(end) => Instant::now() + call < end,
            },
            Source::Both(both) => both.iter().all(|one| one.outlasts(call)),
            Source::OfTask => OF_TASK
                .try_with(Self::clone)
                .is_ok_and(|of_task| of_task.outlasts(call)),
        }
    }

    /// Runs a future as work of this leadership: in it, [`of_reconciliation`](Self::of_reconciliation) is this deadline.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        OF_TASK.scope(self, work).await
    }

    /// Returns the earlier of two deadlines.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(Source::Both(Arc::new([self.clone(), other.clone()])))
    }

    pub(crate) fn extend_until(&self, end: Instant) {
        self.set(Deadline::At(end));
    }

    pub(crate) fn end(&self) {
        self.set(Deadline::Before);
    }

    /// Sets the deadline of one Lease.
    fn set(&self, to: Deadline) {
        if let Source::One(deadline) = &self.0 {
            *deadline.lock() = to;
        }
    }
}

impl From<Deadline> for Leadership {
    fn from(ends: Deadline) -> Self {
        Self(Source::One(Arc::new(Mutex::new(ends))))
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

    #[tokio::test(start_paused = true)]
    async fn the_deadline_of_a_reconciliation_is_the_earlier_one_of_its_leases() {
        let call = Duration::from_secs(10);
        let (shard, group) = (Leadership::pending(), Leadership::pending());
        let of_reconciliation = Leadership::of_reconciliation();
        assert!(!of_reconciliation.outlasts(Duration::ZERO), "no work");
        shard.extend_until(Instant::now() + Duration::from_secs(15));
        let both = shard.and(&group);
        assert!(!both.outlasts(Duration::ZERO));
        group.extend_until(Instant::now() + Duration::from_secs(12));
        let outlasts = async |advance| {
            tokio::time::advance(Duration::from_secs(advance)).await;
            of_reconciliation.outlasts(call)
        };
        assert!(both.clone().scope(outlasts(1)).await);
        assert!(!both.clone().scope(outlasts(2)).await);
        assert!(shard.clone().scope(outlasts(0)).await);
        assert!(!of_reconciliation.outlasts(Duration::ZERO), "no work");
    }
}
