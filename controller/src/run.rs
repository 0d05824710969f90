//! Controller of one kind: its watches, its queue and its workers.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use shared_validation::{CurrentPolicy, Judge};
use tokio::sync::watch;

use crate::announce::Announcer;
use crate::backoff::Backoffs;
use crate::children::{ChildType, Observed};
use crate::cycle::Cycle;
use crate::directory::Directory;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::queue::Queue;
use crate::reconcile::Reconcile;
use crate::sources::{Sources, Stores};
use crate::stalls::Stalls;
use crate::together::together;
use crate::worker::Worker;
use crate::written::Written;

/// Controller of one kind.
pub struct Loop<R> {
    pub(crate) cycle: Cycle<R>,
    directory: Directory,
    pub(crate) pace: Pace,
}

/// Controller of any kind.
#[async_trait]
pub trait Run: Send {
    /// Watches and reconciles until `stop` turns true, then finishes the reconciliations in progress.
    ///
    /// # Guarantees
    ///
    /// If a CRD is missing or the API server is unreachable, the controller waits for it. An object that does not
    /// deserialize as its kind is reported as invalid; the watch and all other objects are not affected.
    async fn run(self: Box<Self>, stop: watch::Receiver<bool>);
}

impl<R: Reconcile> Loop<R> {
    /// Returns a controller for the kind of `ruleset`.
    ///
    /// # Panics
    ///
    /// If the operator declares a type of children twice.
    pub fn new(
        client: Client,
        ruleset: Arc<dyn Judge>,
        reconciler: R,
        metrics: Metrics,
        policy: CurrentPolicy,
    ) -> Self {
        let resource = resource(&*ruleset);
        let child_types = reconciler.children();
        for (at, type_) in child_types.iter().enumerate() {
            let is_again = |other: &ChildType| other.is_the_same_as(type_);
            let twice = child_types[..at].iter().any(is_again);
            assert!(
                !twice,
                "the type of children {} is declared twice",
                type_.resource().plural
            );
        }
        let watches = reconciler.watches();
        let is_namespaced = ruleset.crd()["spec"]["scope"] != "Cluster";
        let finalizer = finalizer(&*ruleset, is_namespaced, &reconciler, &child_types);
        let announcer = Announcer::new(client.clone(), "lockstep");
        let backoffs = Backoffs::default();
        let cycle = Cycle {
            client,
            controller: ruleset.kind().to_lowercase(),
            name: ruleset.kind().to_lowercase(),
            within: None,
            is_namespaced,
            has_status: has_status(&*ruleset),
            resource: resource.clone(),
            ruleset,
            reconciler,
            child_types,
            watches,
            children: Observed::default(),
            finalizer,
            stalls: Stalls::default(),
            written: Written::new(resource.clone()),
            announcer,
            backoffs,
            metrics,
            policy,
        };
        Self {
            cycle,
            directory: Directory::default(),
            pace: Pace::default(),
        }
    }

    /// Registers the controller in a directory for as long as it runs.
    #[must_use]
    pub fn listed_in(mut self, directory: &Directory) -> Self {
        self.directory = directory.clone();
        self
    }

    /// Restricts the controller to one namespace, so that it needs no permissions beyond it. Several namespaces
    /// need several controllers.
    ///
    /// # Panics
    ///
    /// If its objects, or some of their children, are cluster-scoped.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        let cycle = &mut self.cycle;
        let types = &cycle.child_types;
        assert!(
            cycle.is_namespaced && types.iter().all(|type_| type_.is_namespaced),
            "{} cannot be restricted to a namespace: the kind or a type of its children is cluster-scoped",
            cycle.ruleset.kind()
        );
        cycle.name = format!("{}/{namespace}", cycle.controller);
        cycle.within = Some(namespace.to_owned());
        self
    }

    /// Sets the concurrency and the debounce time.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Sets the time limits for deletions.
    #[must_use]
    pub fn stalls(mut self, stalls: Stalls) -> Self {
        self.cycle.stalls = stalls;
        self
    }
}

/// Returns the API resource of a ruleset's kind.
#[must_use]
pub fn resource(ruleset: &dyn Judge) -> ApiResource {
    let gvk = GroupVersionKind::gvk(ruleset.group(), ruleset.version(), ruleset.kind());
    let plural = ruleset.crd()["spec"]["names"]["plural"].as_str();
    ApiResource::from_gvk_with_plural(&gvk, plural.unwrap_or_default())
}

fn has_status(ruleset: &dyn Judge) -> bool {
    let versions = ruleset.crd()["spec"]["versions"].as_array();
    let mut versions = versions.into_iter().flatten();
    versions.any(|version| {
        version["name"] == ruleset.version() && version.pointer("/subresources/status").is_some()
    })
}

/// Returns the finalizer of the kind: the operator's own, or one that is needed because nothing else would remove
/// some of the children.
fn finalizer<R: Reconcile>(
    ruleset: &dyn Judge,
    is_namespaced: bool,
    reconciler: &R,
    child_types: &[ChildType],
) -> Option<String> {
    let mut types = child_types.iter();
    let is_needed = types.any(|type_| {
        type_.is_guarded || type_.is_for_cleanup || (is_namespaced && !type_.is_namespaced)
    });
    let own = reconciler.finalizer().map(String::from);
    own.or_else(|| is_needed.then(|| format!("{}/finalizer", ruleset.group())))
}

#[async_trait]
impl<R: Reconcile> Run for Loop<R> {
    async fn run(self: Box<Self>, mut stop: watch::Receiver<bool>) {
        let cycle = &self.cycle;
        let Pace {
            concurrency,
            debounce,
        } = self.pace;
        let queue = Arc::new(Queue::new(cycle.metrics.queue(&cycle.name), debounce));
        self.directory.enter(&cycle.name, &queue);
        cycle.metrics.at_most(&cycle.name, concurrency.get());
        let _term = Term(&cycle.metrics);
        let stores = Stores::of(cycle);
        let worker = Worker {
            cycle,
            store: stores.parents.clone(),
            related: &stores.related,
            queue: &queue,
        };
        let sources = Sources::new(cycle, &stores, &queue);
        let complete = sources.complete();
        let until_stopped = async {
            tokio::select! {
                // An error means that the sender is gone: stop as well.
                _ = stop.wait_for(|stop| *stop) => {}
                () = sources.follow() => {}
                () = sources.bury() => {}
            }
            sources.close();
        };
        let workers = (0..concurrency.get()).map(|_| worker.work(complete.clone()).boxed());
        let beside = [until_stopped.boxed(), sources.protect().boxed()];
        together(workers.chain(beside)).await;
    }
}

/// Guard that exists while this replica reconciles; the future that holds it may be dropped at any time.
struct Term<'a>(&'a Metrics);

impl Drop for Term<'_> {
    fn drop(&mut self) {
        // The next leader reports these per-object gauges.
        self.0.standing.clear();
        self.0.terminating.clear();
        self.0.failing.clear();
    }
}

#[cfg(test)]
mod tests;
