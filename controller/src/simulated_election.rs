//! Leader election of tests.

use std::time::Duration;

use tokio::time::Instant;

use crate::leader_election::Leadership;

/// Leader election of one replica in a test: the test decides when the replica becomes the leader, and when it is not the
/// leader any more.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::SimulatedElection;
///
/// let election = SimulatedElection::default();
/// let leadership = election.leadership();
/// assert!(!leadership.outlasts(Duration::ZERO));
/// election.win(Duration::from_secs(15));
/// assert!(leadership.outlasts(Duration::from_secs(1)));
/// election.lose();
/// assert!(!leadership.outlasts(Duration::ZERO));
/// ```
pub struct SimulatedElection(Leadership);

impl Default for SimulatedElection {
    /// Returns the election of a replica that is not the leader yet.
    fn default() -> Self {
        Self(Leadership::pending())
    }
}

impl SimulatedElection {
    /// Returns the leadership of the replica, for its operator.
    pub fn leadership(&self) -> Leadership {
        self.0.clone()
    }

    /// Makes the replica the leader for this time.
    pub fn win(&self, lease: Duration) {
        self.0.extend_until(Instant::now() + lease);
    }

    /// Ends the leadership of the replica.
    pub fn lose(&self) {
        self.0.end();
    }
}
