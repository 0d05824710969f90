//! Leader election by a Lease.

pub(crate) mod elector;
#[cfg(test)]
pub(crate) mod fake_leases;
pub(crate) mod leadership;
pub(crate) mod lease_lock;

pub use crate::leader_election::elector::{LeaderElectionMetrics, LeaderElector};
pub use crate::leader_election::leadership::Leadership;
