//! The loop: the reconcile cycle for any registered kind.
//!
//! An operator fills in two steps, [`Reconcile::reconcile`] and [`Reconcile::finalize`], or says what is to
//! be in a [`Handler`]; the cycle around them is the same for every kind: fetch, finalize, default, check,
//! initialize, reconcile, children, status, requeue.

mod announce;
mod arming;
mod backoff;
mod bereaved;
mod children;
mod conditions;
mod cycle;
mod directory;
mod failable;
mod filed;
mod finalizers;
mod handler;
mod index;
mod kept;
mod leadership;
mod lookout;
mod merge_patch;
mod metrics;
mod objects;
mod pace;
mod pause;
pub mod predicate;
mod protection;
mod queue;
mod reconcile;
mod referrers;
mod related;
mod request;
mod round;
mod run;
mod sources;
mod stalls;
mod status;
mod step;
mod tenure;
mod together;
mod token_bucket;
mod watch;
mod watches;
mod worker;
mod written;

pub use arming::{AnyListens, Arming, ArmingMetrics};
pub use children::{ChildType, Strategy};
pub use cycle::Next;
pub use directory::{Directory, Knock, NoSuchLoop};
pub use failable::{Failable, FailableHandler};
pub use handler::{Handled, Handler, SyncResponse};
pub use leadership::{Candidate, LeaderMetrics};
pub use lookout::{Lookout, LookoutMetrics};
pub use metrics::{CallMetrics, Metrics};
pub use pace::Pace;
pub use reconcile::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError};
pub use related::{Found, Related};
pub use request::{Observation, SyncRequest};
pub use run::{Loop, Run, resource};
pub use stalls::Stalls;
pub use tenure::Tenure;
pub use token_bucket::{Paced, TokenBucket};
pub use watch::{Reference, Watch};
