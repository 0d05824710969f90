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

pub use arming::{BackendProbe, FailurePolicyController, FailurePolicyMetrics};
pub use children::{OwnedType, UpdateStrategy};
pub use cycle::Action;
pub use directory::{ControllerNotFound, ControllerRegistry, ReconcileTrigger};
pub use failable::{Failable, FailableHandler};
pub use handler::{SyncHandler, SyncReconciler, SyncResponse};
pub use leadership::{LeaderElectionMetrics, LeaderElector};
pub use lookout::{CrdStatusMetrics, CrdStatusReporter};
pub use metrics::{ClientMetrics, Metrics};
pub use pace::Config;
pub use reconcile::{
    FinalizeOutcome, FinalizeRequest, Readiness, ReconcileError, ReconcileOutput, Reconciler,
};
pub use related::{Lookup, RelatedObjects};
pub use request::{Children, SyncRequest};
pub use run::{Controller, Runnable, api_resource};
pub use stalls::DeletionTimeouts;
pub use tenure::Leadership;
pub use token_bucket::{RateLimited, RateLimiter};
pub use watch::{Reference, Watch};
