//! Times at which the offers of an engine are read.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Time until the first repetition of a read that failed. It doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_mins(10);

/// Attempts to read the offers, by engine.
#[derive(Debug, Default)]
pub(crate) struct Attempts(BTreeMap<&'static str, Attempt>);

#[derive(Debug)]
struct Attempt {
    is_running: bool,
    due: Instant,
    failures: u32,
}

impl Attempts {
    /// Begins to read the offers of an engine if it is due and does not run: at first at once, since the process has started.
    pub(crate) fn begin(&mut self, engine: &'static str, now: Instant) -> bool {
        let attempt = self.0.entry(engine).or_insert(Attempt {
            is_running: false,
            due: now,
            failures: 0,
        });
        let begins = !attempt.is_running && attempt.due <= now;
        attempt.is_running |= begins;
        begins
    }

    /// Records the end of an attempt. The next one is due after `interval`, or earlier if it has failed.
    pub(crate) fn end(
        &mut self,
        engine: &'static str,
        is_done: bool,
        interval: Duration,
        now: Instant,
    ) {
        let Some(attempt) = self.0.get_mut(engine) else {
            return;
        };
        attempt.is_running = false;
        if is_done {
            attempt.failures = 0;
            attempt.due = now + interval;
        } else {
            let factor = 2_u32.saturating_pow(attempt.failures);
            attempt.failures += 1;
            attempt.due = now + FIRST_RETRY.saturating_mul(factor).min(interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn offers_are_read_at_once_then_daily_and_sooner_after_a_failure() {
        let mut attempts = Attempts::default();
        let start = Instant::now();
        assert!(attempts.begin("mysql", start));
        assert!(!attempts.begin("mysql", start + 2 * DAY), "it runs");
        assert!(attempts.begin("postgres", start));
        attempts.end("mysql", true, DAY, start);
        assert!(!attempts.begin("mysql", start + DAY - MINUTE));
        assert!(attempts.begin("mysql", start + DAY));
        let mut now = start;
        for minutes in [10, 20, 40] {
            attempts.end("postgres", false, DAY, now);
            let due = now + minutes * MINUTE;
            assert!(!attempts.begin("postgres", due - MINUTE), "{minutes}");
            assert!(attempts.begin("postgres", due), "{minutes}");
            now = due;
        }
        // The number of failures does not matter any more.
        attempts.end("postgres", true, DAY, now);
        assert!(attempts.begin("postgres", now + DAY));
        attempts.end("postgres", false, DAY, now);
        assert!(attempts.begin("postgres", now + 10 * MINUTE));
        // Never later than a refresh.
        attempts.end("postgres", false, MINUTE, now);
        assert!(attempts.begin("postgres", now + MINUTE));
    }
}
