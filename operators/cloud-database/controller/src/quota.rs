//! Quotas: how much the instances of a namespace may have together, as the policy says.
//!
//! They bind what the controller is about to request: a creation, and more storage or I/O operations. What exceeds a quota waits,
//! and goes on when others need less. What runs is never reduced.

pub(crate) mod enforcement;
pub(crate) mod ledger;
pub(crate) mod usage;
