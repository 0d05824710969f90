//! Simulated time, which tests advance.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Clock of a simulator. It begins with the real time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Simulated time at the real time `since`.
    at: Timestamp,
    since: Instant,
    /// Simulated seconds per real second.
    speed: f64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            at: Timestamp::now(),
            since: Instant::now(),
            speed: 1.0,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.at + self.since.elapsed().mul_f64(self.speed)
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.at += by;
    }

    /// Sets the simulated seconds per real second. With zero, only `advance` moves the clock.
    pub(crate) fn set_speed(&mut self, speed: f64) {
        *self = Self {
            at: self.now(),
            since: Instant::now(),
            speed,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_with_speed_zero_moves_only_when_it_is_advanced() {
        let mut clock = Clock::start();
        clock.set_speed(0.0);
        let before = clock.now();
        assert_eq!(clock.now(), before);
        clock.advance(Duration::from_hours(6));
        assert_eq!(clock.now(), before + Duration::from_hours(6));
    }
}
