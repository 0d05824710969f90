//! Faults of single calls, as a seed chooses them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;

/// Fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallFault {
    /// The call does not reach the server.
    NotExecuted,
    /// The server executes the call, and its answer is lost.
    AnswerLost,
    /// The server refuses the call with this status, without executing it.
    Refused(u16),
    /// The server executes the call and answers with this status all the same.
    FailedAfterwards(u16),
    /// The call is delayed before it is executed.
    Delayed(Duration),
    /// The server executes the call, and the answer does not come until the caller gives up.
    TimedOut(Duration),
}

/// Side of the operator on which a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    /// Calls to the API server.
    Api,
    /// Calls to the external system.
    External,
}

/// Time for which an answer is held back before the connection is closed.
const HANG: Duration = Duration::from_millis(300);

/// Percentage of calls that fail in the worst phases.
const LARGE_SHARE: u64 = 40;

const LONGEST_DELAY_MS: u64 = 40;

/// Number of faults after which a call succeeds, so that an operator with any back-off makes progress.
const MAX_CONSECUTIVE: u64 = 3;

/// Faults of the calls of one trial.
///
/// # Guarantees
///
/// The fault of a call depends on the seed, on what is called and on how often that was called before; calls that concern
/// other objects have no influence. The same seed therefore chooses the same faults as far as the operator makes the same
/// calls.
pub(crate) struct FaultPlan {
    seed: u64,
    /// Percentage of the writes to the external system that get a fault. Of other calls, a half of it does.
    share: AtomicU64,
    is_active: AtomicBool,
    /// If true, the external system refuses every call.
    has_outage: AtomicBool,
    injected: AtomicU64,
    counts: Mutex<HashMap<u64, (u64, u64)>>,
}

impl FaultPlan {
    /// Returns the faults of a seed. They are not active yet.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x5eed);
        // Some seeds have no faults of calls: what they find is easier to understand.
        let shares = [0, 10, 20, LARGE_SHARE];
        Self {
            seed,
            share: AtomicU64::new(shares[random.usize(..shares.len())]),
            is_active: AtomicBool::new(false),
            has_outage: AtomicBool::new(false),
            injected: AtomicU64::new(0),
            counts: Mutex::default(),
        }
    }

    /// Starts or stops all faults.
    pub(crate) fn set_active(&self, is_active: bool) {
        self.is_active.store(is_active, Ordering::SeqCst);
        if !is_active {
            self.set_outage(false);
        }
    }

    /// Lets many calls fail, whatever the seed has chosen.
    pub(crate) fn enlarge_share(&self) {
        self.share.store(LARGE_SHARE, Ordering::SeqCst);
    }

    /// Starts or ends an outage of the external system.
    pub(crate) fn set_outage(&self, has_outage: bool) {
        self.has_outage.store(has_outage, Ordering::SeqCst);
    }

    /// Returns the number of injected faults.
    pub(crate) fn injected(&self) -> u64 {
        self.injected.load(Ordering::SeqCst)
    }

    /// Chooses the fault of the next call of this kind.
    pub(crate) fn choose(&self, side: Side, call: &str, is_write: bool) -> Option<CallFault> {
        if side == Side::External && self.has_outage.load(Ordering::SeqCst) {
            return Some(CallFault::Refused(503));
        }
        let mut hasher = DefaultHasher::new();
        (self.seed, side, call).hash(&mut hasher);
        let key = hasher.finish();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (calls, consecutive) = counts.entry(key).or_default();
        *calls += 1;
        let mut random = Rng::with_seed(key.wrapping_add(*calls));
        let share = self.share.load(Ordering::SeqCst);
        let share = match side {
            Side::External if is_write => share,
            _ => share / 2,
        };
        let is_hit = random.u64(..100) < share && *consecutive < MAX_CONSECUTIVE;
        if !is_hit || !self.is_active.load(Ordering::SeqCst) {
            *consecutive = 0;
            return None;
        }
        *consecutive += 1;
        self.injected.fetch_add(1, Ordering::SeqCst);
        Some(fault(&mut random, side, is_write))
    }
}

fn fault(random: &mut Rng, side: Side, is_write: bool) -> CallFault {
    let mut faults = vec![
        CallFault::NotExecuted,
        CallFault::Refused(500),
        CallFault::Refused(429),
        CallFault::Delayed(Duration::from_millis(random.u64(..LONGEST_DELAY_MS))),
    ];
    if is_write {
        // What tells operators apart is what they do after a write without an answer.
        faults.extend([CallFault::AnswerLost; 3]);
        faults.push(CallFault::NotExecuted);
        faults.push(CallFault::FailedAfterwards(504));
        if side == Side::Api {
            faults.push(CallFault::Refused(409));
        }
    }
    if side == Side::External {
        faults.push(CallFault::TimedOut(HANG));
    }
    faults[random.usize(..faults.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(seed: u64) -> Vec<Option<CallFault>> {
        let plan = FaultPlan::new(seed);
        plan.set_active(true);
        let call = |_| plan.choose(Side::External, "POST a", true);
        (0..50).map(call).collect()
    }

    #[test]
    fn a_seed_chooses_the_same_faults_again_and_another_one_does_not() {
        assert_eq!(faults(1), faults(1));
        assert_ne!(faults(2), faults(7));
    }

    #[test]
    fn no_call_fails_for_ever() {
        for seed in 0..50 {
            let in_a_row = faults(seed);
            let succeeds = |window: &[Option<CallFault>]| window.iter().any(Option::is_none);
            assert!(in_a_row.windows(4).all(succeeds), "{in_a_row:?}");
        }
    }

    #[test]
    fn an_outage_ends_with_the_faults() {
        let plan = FaultPlan::new(1);
        plan.set_outage(true);
        let call = || plan.choose(Side::External, "GET a", false);
        assert_eq!(call(), Some(CallFault::Refused(503)));
        plan.set_active(false);
        assert_eq!(call(), None);
    }
}
