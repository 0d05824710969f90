//! Exponential back-off per object.

use std::collections::HashMap;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use parking_lot::Mutex;

pub(crate) const FIRST: Duration = Duration::from_secs(1);

/// Long enough to leave a broken object alone, short enough for it to recover within a working day.
pub(crate) const LONGEST: Duration = Duration::from_hours(6);

/// Shorter while an object is being deleted, since a user waits for that.
pub(crate) const LONGEST_WHILE_DELETING: Duration = Duration::from_mins(10);

/// Shorter for a request of ours that the API server rejects: an administrator changes a policy, a quota or a permission, and
/// no watch reports that.
pub(crate) const LONGEST_OF_REJECTED: Duration = Duration::from_mins(10);

/// Back-offs of all objects.
pub(crate) struct Backoffs {
    first: Duration,
    longest: Duration,
    by_uid: Mutex<HashMap<String, Backoff>>,
}

struct Backoff {
    generation: i64,
    delays: ExponentialBackoff,
}

impl Default for Backoffs {
    fn default() -> Self {
        Self::new(FIRST, LONGEST)
    }
}

impl Backoffs {
    /// Returns back-offs that begin with one delay and do not exceed another one.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            by_uid: Mutex::default(),
        }
    }

    /// Records one more failure and returns the delay. It doubles with each failure, has jitter, and starts again
    /// once the spec has changed.
    pub(crate) fn record_failure(&self, uid: &str, generation: i64, deleting: bool) -> Duration {
        let longest = if deleting {
            self.longest.min(LONGEST_WHILE_DELETING)
        } else {
            self.longest
        };
        let fresh = || Backoff {
            generation,
            delays: ExponentialBuilder::new()
                .with_min_delay(self.first)
                .with_max_delay(longest)
                .with_jitter()
                .without_max_times()
                .build(),
        };
        let mut by_uid = self.by_uid.lock();
        let backoff = by_uid.entry(uid.to_owned()).or_insert_with(fresh);
        if backoff.generation != generation {
            *backoff = fresh();
        }
        // The jitter can add up to one minimal delay.
        backoff.delays.next().unwrap_or(longest).min(longest)
    }

    /// Removes the recorded failures of an object.
    pub(crate) fn reset(&self, uid: &str) {
        self.by_uid.lock().remove(uid);
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
            "the back-off is per object"
        );
        assert!(
            backoffs.record_failure("a", 2, false) < Duration::from_secs(3),
            "the spec has changed"
        );
        backoffs.reset("a");
        assert!(backoffs.record_failure("a", 2, false) < Duration::from_secs(3));
    }

    #[test]
    fn a_deletion_is_retried_at_least_every_ten_minutes() {
        let backoffs = Backoffs::default();
        let last = (0..40)
            .map(|_| backoffs.record_failure("a", 1, true))
            .last();
        assert_eq!(last, Some(LONGEST_WHILE_DELETING));
    }

    #[test]
    fn the_first_and_the_longest_delay_can_be_chosen() {
        let (first, longest) = (Duration::from_millis(5), Duration::from_millis(50));
        let backoffs = Backoffs::new(first, longest);
        let delays: Vec<_> = (0..20)
            .map(|_| backoffs.record_failure("a", 1, false))
            .collect();
        assert!(delays[0] <= 2 * first, "{:?}", delays[0]);
        assert_eq!(delays[19], longest);
        assert!(backoffs.record_failure("b", 1, true) <= 2 * first);
    }
}
