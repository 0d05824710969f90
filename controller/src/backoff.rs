//! How long to wait after a failure, for each object by itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

const FIRST: Duration = Duration::from_secs(1);

/// Long enough to leave a broken object alone, short enough for it to heal within a working day.
const LONGEST: Duration = Duration::from_hours(6);

/// While an object is being deleted somebody waits for it.
pub(crate) const LONGEST_WHILE_DELETING: Duration = Duration::from_mins(10);

/// Backoffs by object.
#[derive(Default)]
pub(crate) struct Backoffs {
    by_uid: Mutex<HashMap<String, Backoff>>,
}

struct Backoff {
    generation: i64,
    delays: ExponentialBackoff,
}

impl Backoffs {
    /// The delay after one more failure: doubling with jitter, from the start again once the spec has
    /// changed.
    pub(crate) fn record_failure(&self, uid: &str, generation: i64, deleting: bool) -> Duration {
        let longest = if deleting {
            LONGEST_WHILE_DELETING
        } else {
            LONGEST
        };
        let fresh = || Backoff {
            generation,
            delays: ExponentialBuilder::new()
                .with_min_delay(FIRST)
                .with_max_delay(longest)
                .with_jitter()
                .without_max_times()
                .build(),
        };
        let mut by_uid = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner);
        let backoff = by_uid.entry(uid.to_owned()).or_insert_with(fresh);
        if backoff.generation != generation {
            *backoff = fresh();
        }
        // Jitter adds up to one minimal delay on top.
        backoff.delays.next().unwrap_or(longest).min(longest)
    }

    /// Forgets an object's failures.
    pub(crate) fn reset(&self, uid: &str) {
        self.by_uid
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_six_hours_and_start_again_after_a_change() {
        let backoffs = Backoffs::default();
        let delays: Vec<_> = (0..40)
            .map(|_| backoffs.record_failure("a", 1, false))
            .collect();
        assert!(delays[0] < Duration::from_secs(3), "{:?}", delays[0]);
        assert!(delays[5] >= Duration::from_secs(32), "{:?}", delays[5]);
        assert_eq!(delays[39], LONGEST);
        assert!(
            backoffs.record_failure("b", 1, false) < Duration::from_secs(3),
            "objects do not share a backoff"
        );
        assert!(
            backoffs.record_failure("a", 2, false) < Duration::from_secs(3),
            "the spec has changed"
        );
        backoffs.reset("a");
        assert!(backoffs.record_failure("a", 2, false) < Duration::from_secs(3));
    }

    #[test]
    fn a_deletion_is_tried_at_least_every_ten_minutes() {
        let backoffs = Backoffs::default();
        let last = (0..40)
            .map(|_| backoffs.record_failure("a", 1, true))
            .last();
        assert_eq!(last, Some(LONGEST_WHILE_DELETING));
    }
}
