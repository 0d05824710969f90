//! Controller runtime for custom resources: reconciles the objects of any registered kind.
//!
//! An operator author implements [`Reconciler`], or a [`SyncHandler`] that only returns the desired state. Everything
//! else is the same for every kind and is provided here. The concepts, in reading order:
//!
//! # Controller
//!
//! A [`Controller`] is the controller of one kind. It reconciles an object after each change of the object itself, of
//! its owned objects and of its related objects. Every reconciliation has the same steps:
//!
//! ```text
//! fetch → being deleted? finalize → default → validate → initialize → reconcile → owned objects → status → requeue
//! ```
//!
//! Validation uses the ruleset that the webhook uses. An object that violates a rule is suspended: its status and
//! an Event report the violations, and nothing is changed until the object is fixed. If defaults or the finalizer
//! are missing, `initialize` persists them in one patch and ends the reconciliation; the watch event of that patch
//! triggers the next one.
//!
//! [`Runnable`] is the interface of a controller whatever its kind, and [`Controller::reconcile_once`] runs a single
//! reconciliation in tests.
//!
//! # Reconciler
//!
//! [`Reconciler`] is what an operator author writes. [`reconcile`](Reconciler::reconcile) brings the current state to
//! the desired state, and [`finalize`](Reconciler::finalize) removes external resources before the object is
//! removed. Both are level-based: they compare the desired with the current state and do not depend on the event
//! that triggered them. They return a [`ReconcileOutput`], a [`FinalizeOutcome`] or a [`ReconcileError`].
//!
//! A [`SyncHandler`] is the simpler form, for an operator whose objects consist of other Kubernetes objects: a function
//! from a [`SyncRequest`] (the parent, its children and its related objects) to a [`SyncResponse`] (the desired
//! children and the status), as the `sync` hook of Metacontroller. [`SyncReconciler`] turns it into a [`Reconciler`].
//!
//! # Owned objects
//!
//! A reconciliation returns the desired owned objects (children). [`OwnedType`] declares each of their types, and
//! [`UpdateStrategy`] how an existing child is updated. The runtime creates missing children, updates those that differ
//! and deletes those that are no longer desired. It sends nothing for a child that is up to date, and never changes
//! or deletes an object that another client has created. [`Children`] is the cached state of the children. An operator
//! whose result depends on it [says so](SyncResponse::reads_children), and is called again after children are written.
//!
//! # Watches
//!
//! A controller watches the objects of its kind and, by label, its children. A [`Watch`] adds another type, as
//! narrow as its selectors allow. A [`predicate`] ignores changes that need no reconciliation.
//!
//! # Related objects
//!
//! Related objects are objects that others depend on, such as a Secret that a field names. A [`Watch`] computes the
//! [`Reference`]s of an object: by name, by label or by index key. A change of a related object triggers a
//! reconciliation of each object that refers to it. [`RelatedObjects`] reads related objects from the cache, and
//! [`Watch::with_in_use_protection`] protects them from deletion while they are in use.
//!
//! # Queue
//!
//! Triggered objects wait in a priority queue: changes first, then requeued objects, then the objects that existed
//! when the controller started. An object is in the queue at most once and is never reconciled concurrently with
//! itself. [`Config`] sets the number of concurrent reconciliations and the debounce time. [`Action`] is the result of
//! a reconciliation: when the object is reconciled again. After a failure that is an exponential back-off per
//! object.
//!
//! A [`ControllerRegistry`] is the registry of the running controllers. It shows their queues and enqueues an object on
//! request, for example for a [`ReconcileTrigger`] that another system sends.
//!
//! # Status
//!
//! The runtime writes the conditions `Valid`, `Ready`, `Reconciling`, `Stalled`, `Paused` and `DeletionStalled`,
//! the fields `observedGeneration` and `lastHandledReconcileAt`, and the last validated values. All other status fields are the operator's. Each
//! write is one patch, and nothing is written if nothing has changed. Failures are also published as Events.
//!
//! # Secrets
//!
//! A controller has [`SecretRights`] in single namespaces only. [`SecretAccess`] has the command by which an administrator
//! grants them, for the message of an object whose Secret cannot be read.
//!
//! # Stored data
//!
//! A [`NamedConfigMap`] keeps what an operator has read from another system, for its rules in all processes.
//!
//! # Finalizers
//!
//! If an operator declares a finalizer, or if its children need one, it is added before the first call of
//! [`reconcile`](Reconciler::reconcile) and removed once all cleanup is done. [`DeletionTimeouts`] sets when a
//! deletion that takes long is reported, and whether the finalizer is finally removed although the cleanup has not
//! ended.
//!
//! # Leader election
//!
//! A [`LeaderElector`] takes part in leader election by a Lease, so that one replica reconciles. [`Leadership`] is the
//! time until which the replica is certain to be the only leader; an operator checks it before it writes to another
//! system. A [`SimulatedElection`] gives and takes it in tests.
//!
//! # Sharding
//!
//! A [`ShardElector`] distributes the objects over the replicas: each object belongs to a shard by its UID, and each shard has
//! a Lease. A controller [with these shards](Controller::with_shards) caches and reconciles the objects of the shards that the
//! replica holds.
//!
//! # Async runtime
//!
//! [`runtime_builder`] configures an async runtime for the reconciliations of the controllers of a process.
//!
//! # Metrics and rate limits
//!
//! [`Metrics`], [`ClientMetrics`] and [`LeaderElectionMetrics`] are the Prometheus metrics. A [`RateLimiter`] limits
//! the rate of calls to the API server or to another system.

mod api;
mod cache;
pub mod children;
mod controller;
mod custom_object;
mod dynamic_object;
mod events;
mod field_manager;
pub mod leader_election;
pub mod metrics;
mod named_config_map;
pub mod predicate;
mod protection;
pub mod queue;
mod reconcile;
mod request_limits;
mod runtime;
mod sharding;
mod simulated_election;
mod status;
pub mod watch;

pub use crate::api::error::ReconcileError;
pub use crate::api::fake_cache::FakeCache;
pub use crate::api::preconditions::require_existing;
pub use crate::api::read_object::ReadObject;
pub use crate::api::reconciler::{
    DeletionEffect, FinalizeOutcome, FinalizeRequest, OperatorCondition, OperatorEvent, Readiness,
    ReconcileOutput, Reconciler, Stalled, SuspendedRequest,
};
pub use crate::api::request::SyncRequest;
pub use crate::api::secret_access::{SecretAccess, SecretRights};
pub use crate::api::sync::{SyncHandler, SyncReconciler, SyncResponse};
pub use crate::children::{Children, OWNER_LABEL, OwnedType, UpdateStrategy};
pub use crate::controller::config::Config;
pub use crate::controller::deletion_timeouts::DeletionTimeouts;
pub use crate::controller::registry::{ControllerNotFound, ControllerRegistry, ReconcileTrigger};
pub use crate::controller::{Controller, Runnable, api_resource};
pub use crate::custom_object::CustomObject;
pub use crate::leader_election::{LeaderElectionMetrics, LeaderElector, Leadership};
pub use crate::metrics::{ClientMetrics, Metrics, ObjectGauge};
pub use crate::named_config_map::{MAX_CONFIG_MAP_BYTES, NamedConfigMap};
pub use crate::queue::{RateLimited, RateLimiter};
pub use crate::reconcile::action::Action;
pub use crate::request_limits::{LimitedRequests, RequestLimits, path_segment};
pub use crate::runtime::runtime_builder;
pub use crate::sharding::{LEADER_ELECTION_ID_LABEL, ShardElector, Shards};
pub use crate::simulated_election::SimulatedElection;
pub use crate::status::typed::{read_status, replace_status};
pub use lockstep_watch::{WatchLimits, Watches};

pub use crate::watch::{Lookup, Reference, RelatedObjects, Watch};
