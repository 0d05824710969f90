//! Leader election by a Lease.

pub(crate) mod elector;
pub(crate) mod leadership;
