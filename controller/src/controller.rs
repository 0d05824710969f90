//! Controller of one kind: its watches, its queue and its workers.

pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod deletion_timeouts;
pub(crate) mod reconcile_once;
pub(crate) mod registry;
#[cfg(test)]
mod tests;
pub(crate) mod worker;

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use lockstep_shared_validation::{PolicyHandle, Validator};
use tokio::sync::watch;

use crate::api::reconciler::Reconciler;
use crate::cache::write_through::WriteThrough;
use crate::children::OwnedType;
use crate::controller::config::Config;
use crate::controller::context::Context;
use crate::controller::deletion_timeouts::DeletionTimeouts;
use crate::controller::registry::ControllerRegistry;
use crate::controller::worker::Worker;
use crate::events::recorder::EventRecorder;
use crate::field_manager::FieldManager;
use crate::metrics::Metrics;
use crate::queue::backoff::Backoffs;
use crate::queue::priority_queue::Queue;
use crate::sharding::held_shards::Shards;
use crate::sharding::scope::ShardScope;
use crate::status::reconcile_request::ReconcileRequests;
use crate::status::unconfirmed::UnconfirmedStatuses;
use crate::watch::namespace_watches::NamespaceWatches;
use crate::watch::read_objects::ReadObjects;
use crate::watch::sources::Sources;
use crate::watch::stores::Stores;

/// Controller of one kind.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use lockstep_controller::{Controller, Metrics, Reconciler, Runnable};
/// use kube::Client;
/// use prometheus_client::registry::Registry;
/// use lockstep_shared_validation::{PolicyHandle, Ruleset};
/// use tokio::sync::watch;
///
/// async fn run<R: Reconciler>(client: Client, operator: R, stop: watch::Receiver<bool>) {
///     let ruleset = Ruleset::<R::Kind>::compile().expect("the rules compile");
///     let metrics = Metrics::register(&mut Registry::default());
///     let policy = PolicyHandle::default();
///     let controller = Controller::new("greeting-operator", client, Arc::new(ruleset), operator, metrics, policy);
///     Box::new(controller).run(stop).await;
/// }
/// ```
pub struct Controller<R> {
    pub(crate) context: Context<R>,
    registry: ControllerRegistry,
    pub(crate) config: Config,
}

/// Controller of any kind.
#[async_trait]
pub trait Runnable: Send {
    /// Watches and reconciles until `stop` turns true, then finishes the reconciliations in progress.
    ///
    /// # Guarantees
    ///
    /// If a CRD is missing or the API server is unreachable, the controller waits for it. An object that does not
    /// deserialize as its kind is reported as invalid; the watch and all other objects are not affected.
    async fn run(self: Box<Self>, stop: watch::Receiver<bool>);
}

impl<R: Reconciler> Controller<R> {
    /// Returns a controller for the kind of `ruleset`, as a part of a program. The name of the program is the field
    /// manager of what the controller writes, and the reporting controller of its Events: two programs need different names.
    ///
    /// # Panics
    ///
    /// If the operator declares a type of children twice.
    pub fn new(
        program: &str,
        client: Client,
        ruleset: Arc<dyn Validator>,
        reconciler: R,
        metrics: Metrics,
        policy: PolicyHandle,
    ) -> Self {
        let resource = api_resource(&*ruleset);
        let child_types = reconciler.owns();
        for (at, type_) in child_types.iter().enumerate() {
            let is_again = |other: &OwnedType| other.is_same_type_as(type_);
            let twice = child_types[..at].iter().any(is_again);
            assert!(
                !twice,
                "the type of children {} is declared twice",
                type_.api_resource().plural
            );
        }
        let watches = reconciler.watches();
        let is_namespaced = ruleset.crd()["spec"]["scope"] != "Cluster";
        let finalizer = finalizer(&*ruleset, is_namespaced, &reconciler, &child_types);
        let recorder = EventRecorder::new(client.clone(), program);
        let manager = FieldManager::new(program);
        let backoffs = Backoffs::default();
        let context = Context {
            client,
            manager: manager.clone(),
            controller: ruleset.kind().to_lowercase(),
            name: ruleset.kind().to_lowercase(),
            namespace: None,
            is_namespaced,
            has_status: has_status(&*ruleset),
            resource: resource.clone(),
            validator: ruleset,
            reconciler,
            namespace_watches: NamespaceWatches::of(&child_types),
            owned_types: child_types,
            watches,
            read_objects: ReadObjects::default(),
            shards: None,
            finalizer,
            deletion_timeouts: DeletionTimeouts::default(),
            written: WriteThrough::new(resource, manager),
            recorder,
            backoffs,
            reconcile_requests: ReconcileRequests::default(),
            unconfirmed_statuses: UnconfirmedStatuses::default(),
            metrics,
            policy,
        };
        Self {
            context,
            registry: ControllerRegistry::default(),
            config: Config::default(),
        }
    }

    /// Registers the controller in a registry for as long as it runs.
    #[must_use]
    pub fn register_in(mut self, registry: &ControllerRegistry) -> Self {
        self.registry = registry.clone();
        self
    }

    /// Restricts the controller to one namespace, so that it needs no permissions beyond it. Several namespaces
    /// need several controllers.
    ///
    /// # Panics
    ///
    /// If its objects, or some of their children, are cluster-scoped.
    #[must_use]
    pub fn namespaced(mut self, namespace: &str) -> Self {
        let context = &mut self.context;
        let types = &context.owned_types;
        assert!(
            context.is_namespaced && types.iter().all(|type_| type_.is_namespaced),
            "{} cannot be restricted to a namespace: the kind or a type of its children is cluster-scoped",
            context.validator.kind()
        );
        context.name = format!("{}/{namespace}", context.controller);
        context.namespace = Some(namespace.to_owned());
        self
    }

    /// Restricts the controller to the objects of the shards that this replica holds, whichever these are at a time.
    #[must_use]
    pub fn with_shards(mut self, shards: Shards) -> Self {
        self.context.shards = Some(ShardScope::new(shards));
        self
    }

    /// Sets the concurrency, the debounce time and the back-off.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.context.backoffs = Backoffs::new(config.min_retry_delay, config.max_retry_delay);
        self.config = config;
        self
    }

    /// Sets the time limits for deletions.
    #[must_use]
    pub fn with_deletion_timeouts(mut self, timeouts: DeletionTimeouts) -> Self {
        self.context.deletion_timeouts = timeouts;
        self
    }
}

/// Returns the API resource of a ruleset's kind.
#[must_use]
pub fn api_resource(ruleset: &dyn Validator) -> ApiResource {
    let gvk = GroupVersionKind::gvk(ruleset.group(), ruleset.version(), ruleset.kind());
    let plural = ruleset.crd()["spec"]["names"]["plural"].as_str();
    ApiResource::from_gvk_with_plural(&gvk, plural.unwrap_or_default())
}

fn has_status(ruleset: &dyn Validator) -> bool {
    let versions = ruleset.crd()["spec"]["versions"].as_array();
    let mut versions = versions.into_iter().flatten();
    versions.any(|version| {
        version["name"] == ruleset.version() && version.pointer("/subresources/status").is_some()
    })
}

/// Returns the finalizer of the kind: the operator's own, or one that is needed because nothing else would remove
/// some of the children.
fn finalizer<R: Reconciler>(
    ruleset: &dyn Validator,
    is_namespaced: bool,
    reconciler: &R,
    child_types: &[OwnedType],
) -> Option<String> {
    let mut types = child_types.iter();
    let is_needed = types.any(|type_| {
        type_.has_finalizer || type_.is_cleanup_job() || (is_namespaced && !type_.is_namespaced)
    });
    let own = reconciler.finalizer().map(String::from);
    own.or_else(|| is_needed.then(|| format!("{}/finalizer", ruleset.group())))
}

#[async_trait]
impl<R: Reconciler> Runnable for Controller<R> {
    async fn run(self: Box<Self>, mut stop: watch::Receiver<bool>) {
        let context = &self.context;
        let Config {
            max_concurrent_reconciles,
            debounce,
            ..
        } = self.config;
        // The namespaces share the workers, unless the controller has only one.
        let workers = context.namespace.is_none();
        let workers = workers.then_some(max_concurrent_reconciles.get());
        let queue = Queue::new(context.metrics.queue(&context.name), debounce, workers);
        let queue = Arc::new(queue);
        self.registry.register(&context.name, &queue);
        context
            .metrics
            .set_max_concurrent_reconciles(&context.name, max_concurrent_reconciles.get());
        let _term = RunGuard(&context.metrics);
        let stores = Stores::of(context);
        let worker = Worker {
            context,
            store: stores.parents.clone(),
            related: &stores.related,
            queue: &queue,
        };
        let sources = Sources::new(context, &stores, &queue);
        let complete = sources.complete();
        let until_stopped = async {
            tokio::select! {
                // An error means that the sender is gone: stop as well.
                _ = stop.wait_for(|stop| *stop) => {}
                () = sources.run() => {}
                () = sources.collect_orphans() => {}
                () = sources.follow_shards() => {}
            }
            sources.close();
        };
        let workers =
            (0..max_concurrent_reconciles.get()).map(|_| worker.run(complete.clone()).boxed());
        let beside = [until_stopped.boxed(), sources.protect().boxed()];
        // Only a future that was woken is polled.
        let all: FuturesUnordered<_> = workers.chain(beside).collect();
        all.collect::<()>().await;
    }
}

/// Guard that exists while this replica reconciles; the future that holds it may be dropped at any time.
struct RunGuard<'a>(&'a Metrics);

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        // The next leader reports these per-object gauges.
        self.0.violating_objects.clear();
        self.0.terminating.clear();
        self.0.failing.clear();
        self.0.stalled.clear();
    }
}
