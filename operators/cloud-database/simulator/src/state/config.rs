//! Durations and quotas, which tests can change.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::catalogue::Catalogue;

/// Settings of a simulator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) timing: Timing,
    pub(crate) quotas: Quotas,
    pub(crate) catalogue: Catalogue,
}

/// Durations in simulated time. The defaults are short, so that tests need not wait, except those after which a user of
/// RDS has to try again another day.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Duration of a state without an own duration, such as `creating` or `modifying`.
    pub state: Duration,
    /// Durations of single states, by their names.
    pub states: BTreeMap<String, Duration>,
    /// Time from the request of a modification or stop until the state of the instance changes.
    pub lag: Duration,
    /// Time until a snapshot is available.
    pub snapshot: Duration,
    /// Time after a storage modification in which RDS rejects another one.
    pub storage_cooldown: Duration,
    /// Time after the creation of an instance or snapshot in which RDS does not list it.
    pub listing_delay: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_hours(1);
        Self {
            state: Duration::from_millis(20),
            // RDS starts a stopped instance after seven days.
            states: BTreeMap::from([("stopped".to_owned(), 7 * 24 * HOUR)]),
            lag: Duration::from_millis(10),
            snapshot: Duration::from_millis(20),
            storage_cooldown: 6 * HOUR,
            listing_delay: Duration::ZERO,
        }
    }
}

impl Timing {
    /// Returns the duration of a state.
    pub(crate) fn of(&self, status: &str) -> Duration {
        self.states.get(status).copied().unwrap_or(self.state)
    }
}

/// Quotas of each account and region ("Quotas and constraints for Amazon RDS" of the user guide).
#[derive(Clone, Copy, Debug)]
pub struct Quotas {
    /// Number of instances.
    pub instances: usize,
    /// Sum of the storage of all instances, in GiB.
    pub storage: i64,
    /// Number of manual snapshots.
    pub snapshots: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            instances: 40,
            storage: 100_000,
            snapshots: 100,
        }
    }
}
