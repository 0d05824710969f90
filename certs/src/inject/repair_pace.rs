//! Pace of repairs: clients that overwrite each other's changes must not do so without end.

use std::time::Duration;

/// Delay between a change of a configuration and the next check of all.
///
/// Two clients that overwrite each other's changes would do so without end. Each repair therefore doubles the delay,
/// until none was necessary for a while.
#[derive(Default)]
pub(crate) struct RepairPace {
    repairs: u32,
}

impl RepairPace {
    /// Records a check, and whether it has repaired anything.
    pub(crate) fn record(&mut self, has_repaired: bool, is_periodic: bool) {
        if has_repaired {
            self.repairs = self.repairs.saturating_add(1);
        } else if is_periodic {
            self.repairs = 0;
        }
    }

    /// Returns the delay, at least `first` and at most `longest`.
    pub(crate) fn delay(&self, first: Duration, longest: Duration) -> Duration {
        // The first repair has no consequences: a user has just applied an old manifest.
        let doublings = self.repairs.saturating_sub(1).min(16);
        first.saturating_mul(1 << doublings).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repair_in_a_row_doubles_the_delay_until_none_was_necessary() {
        let mut pace = RepairPace::default();
        let (first, longest) = (Duration::from_millis(100), Duration::from_mins(1));
        let mut delays = Vec::new();
        for _ in 0..12 {
            pace.record(true, false);
            // The change that the repair itself has made.
            pace.record(false, false);
            delays.push(pace.delay(first, longest).as_millis());
        }
        let expected = [
            100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000,
        ];
        assert_eq!(delays, expected);
        pace.record(false, true);
        assert_eq!(pace.delay(first, longest), first);
    }
}
