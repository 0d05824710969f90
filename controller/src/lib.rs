//! The loop: the reconcile cycle for any registered kind.
//!
//! An operator fills in two steps, [`Reconcile::reconcile`] and [`Reconcile::finalize`]; the cycle
//! around them is the same for every kind: fetch, finalize, default, check, initialize, reconcile,
//! status, requeue.

mod announce;
mod arming;
mod backoff;
mod conditions;
mod cycle;
mod leadership;
mod lookout;
mod merge_patch;
mod metrics;
mod pause;
mod predicate;
mod queue;
mod reconcile;
mod run;
mod status;
mod watches;

pub use arming::{AnyListens, Arming, ArmingMetrics};
pub use leadership::Candidate;
pub use lookout::{Lookout, LookoutMetrics};
pub use metrics::Metrics;
pub use reconcile::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError};
pub use run::{Loop, Run};
