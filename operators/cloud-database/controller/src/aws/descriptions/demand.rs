//! Times of the latest questions, which decide if a sweep costs fewer calls than single calls.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of ages that are distinguished.
const MAX_AGES: usize = 50;

/// Times of the latest questions, by the age that their answers can have.
#[derive(Debug, Default)]
pub(crate) struct Demand(BTreeMap<Duration, VecDeque<Instant>>);

impl Demand {
    /// Records a question. No more than `limit` are remembered for each age.
    pub(crate) fn record(&mut self, now: Instant, max_age: Duration, limit: usize) {
        let times = self.0.entry(max_age).or_default();
        times.push_back(now);
        while times.len() > limit {
            times.pop_front();
        }
        if self.0.len() > MAX_AGES {
            self.forget(now);
        }
    }

    /// Removes ages whose questions do not count any more, or else those that were asked for least recently.
    fn forget(&mut self, now: Instant) {
        let last = |times: &VecDeque<Instant>| times.back().copied();
        self.0.retain(|age, times| {
            last(times).is_some_and(|last| now.saturating_duration_since(last) <= *age)
        });
        while self.0.len() > MAX_AGES {
            let oldest = self.0.iter().min_by_key(|(_, times)| last(times));
            let Some(oldest) = oldest.map(|(age, _)| *age) else {
                return;
            };
            self.0.remove(&oldest);
        }
    }

    /// Returns true if at least `count` questions were asked within the last `max_age` whose answers cannot be older
    /// than that: a sweep that begins now could have answered them all. Questions that accept older answers count
    /// too rarely to justify a sweep, because another sweep will serve them.
    pub(crate) fn reaches(&self, now: Instant, max_age: Duration, count: usize) -> bool {
        let is_recent = |time: &&Instant| now.saturating_duration_since(**time) <= max_age;
        let alike = self.0.range(..=max_age);
        let recent = alike.flat_map(|(_, times)| times.iter().rev().take_while(is_recent));
        recent.take(count).count() >= count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn questions_count_for_as_long_as_their_answers_may_be_old() {
        let mut demand = Demand::default();
        let start = Instant::now();
        for second in 0..3 {
            demand.record(start + SECOND * second, SECOND * 10, 5);
        }
        assert!(demand.reaches(start + SECOND * 10, SECOND * 10, 3));
        assert!(!demand.reaches(start + SECOND * 11, SECOND * 10, 3));
        assert!(demand.reaches(start + SECOND * 11, SECOND * 10, 2));
    }

    #[test]
    fn questions_that_accept_older_answers_do_not_justify_a_sweep_for_younger_ones() {
        let mut demand = Demand::default();
        let now = Instant::now();
        for _ in 0..3 {
            demand.record(now, SECOND * 100, 5);
        }
        demand.record(now, SECOND, 5);
        assert!(!demand.reaches(now, SECOND, 2));
        assert!(demand.reaches(now, SECOND * 100, 4));
    }

    #[test]
    fn a_limited_number_of_ages_is_distinguished() {
        let mut demand = Demand::default();
        let start = Instant::now();
        demand.record(start, SECOND * 1_000, 5);
        for number in 0..1_000_u32 {
            let now = start + SECOND * number;
            demand.record(now, SECOND + Duration::from_millis(number.into()), 5);
        }
        assert!(demand.0.len() <= MAX_AGES, "{}", demand.0.len());
        // The questions that count are among them.
        assert!(demand.reaches(start + SECOND * 999, SECOND * 1_000, 2));
    }

    #[test]
    fn only_the_latest_questions_are_remembered() {
        let mut demand = Demand::default();
        let now = Instant::now();
        for _ in 0..1_000 {
            demand.record(now, SECOND, 5);
        }
        assert!(demand.reaches(now, SECOND, 5));
        assert!(!demand.reaches(now, SECOND, 6));
    }
}
