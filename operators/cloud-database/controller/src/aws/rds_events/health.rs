//! State of the reception of events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::aws::location::Location;

/// Time after the last event of an account and region until which others are expected from there. RDS reports the beginning
/// and the end of each daily backup.
const EXPECTED_FOR: Duration = Duration::from_hours(25);

/// State of the reception by this replica. It is shared by its clones.
///
/// # Guarantees
///
/// - A replica that does not lead receives no events.
/// - Events count for an account and region only if one was received from there: the others may have no rule that sends them.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventsHealth(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Time since which messages have been received without an error.
    receiving_since: Option<Instant>,
    last_events: HashMap<Location, Instant>,
}

impl EventsHealth {
    /// Returns the time since which each event of an account and region is received, or `None` if they are not.
    pub(crate) fn receiving_since(&self, location: &Location) -> Option<Instant> {
        let state = self.lock();
        let last = state.last_events.get(location)?;
        let since = state.receiving_since?;
        (last.elapsed() < EXPECTED_FOR).then_some(since)
    }

    /// Records if events are received. Returns true if that has changed.
    pub(crate) fn set(&self, is_receiving: bool) -> bool {
        let mut state = self.lock();
        let has_changed = state.receiving_since.is_some() != is_receiving;
        if has_changed {
            state.receiving_since = is_receiving.then(Instant::now);
        }
        has_changed
    }

    /// Records an event of an account and region.
    pub(crate) fn record_event(&self, location: Location) {
        self.lock().last_events.insert(location, Instant::now());
    }

    /// Records the end of a term of leadership.
    pub(crate) fn end(&self) {
        *self.lock() = State::default();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn events_count_for_the_accounts_and_regions_from_which_they_come() {
        let at = |region: &str| Location {
            region: region.to_owned(),
            account_id: "123456789012".to_owned(),
        };
        let (health, other) = (EventsHealth::default(), at("us-east-1"));
        let here = at("eu-central-1");
        let started = Instant::now();
        assert!(health.set(true) && !health.set(true));
        assert_eq!(health.receiving_since(&here), None, "no event yet");
        advance(Duration::from_secs(5)).await;
        health.record_event(here.clone());
        assert_eq!(health.receiving_since(&here), Some(started));
        assert_eq!(health.receiving_since(&other), None);
        assert!(health.set(false));
        assert_eq!(health.receiving_since(&here), None, "the queue fails");
        assert!(health.set(true));
        assert_eq!(health.receiving_since(&here), Some(Instant::now()));
        advance(EXPECTED_FOR).await;
        assert_eq!(health.receiving_since(&here), None, "no daily backup");
    }
}
