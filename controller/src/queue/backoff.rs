//! Exponential back-off per object.

use std::collections::HashMap;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use parking_lot::Mutex;

const FIRST: Duration = Duration::from_secs(1);

/// Long enough to leave a broken object alone, short enough for it to recover within a working day.
const LONGEST: Duration = Duration::from_hours(6);

/// Shorter while an object is being deleted, since a user waits for that.
pub(crate) const LONGEST_WHILE_DELETING: Duration = Duration::from_mins(10);

/// Back-offs of all objects.
#[derive(Default)]
pub(crate) struct Backoffs {
    by_uid: Mutex<HashMap<String, Backoff>>,
}

struct Backoff {
    generation: i64,
    delays: ExponentialBackoff,
}

impl Backoffs {
    /// Records one more failure and returns the delay. It doubles with each failure, has jitter, and starts again
    /// once the spec has changed.
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
}
