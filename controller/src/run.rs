//! The loop of one kind: what is watched, what waits, and who works on it.

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

/// The loop of one kind.
pub struct Loop<R> {
    pub(crate) cycle: Cycle<R>,
    directory: Directory,
    pub(crate) pace: Pace,
}

/// A loop of any kind.
#[async_trait]
pub trait Run: Send {
    /// Watches and reconciles until `stop` turns true, then finishes the rounds under way.
    ///
    /// # Guarantees
    ///
    /// A missing CRD or an unreachable API server is waited for. An object that cannot be read as its
    /// kind is reported as invalid; the watch and every other object go on.
    async fn run(self: Box<Self>, stop: watch::Receiver<bool>);
}

impl<R: Reconcile> Loop<R> {
    /// A loop for the kind of `ruleset`.
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
                "{} is declared twice as a type of children",
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

    /// Enters it into a directory for as long as it runs.
    #[must_use]
    pub fn listed_in(mut self, directory: &Directory) -> Self {
        self.directory = directory.clone();
        self
    }

    /// Keeps to one namespace, for which it needs no right beyond. Several of them are as many loops.
    ///
    /// # Panics
    ///
    /// If its objects, or some of their children, are in no namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        let cycle = &mut self.cycle;
        let types = &cycle.child_types;
        assert!(
            cycle.is_namespaced && types.iter().all(|type_| type_.is_namespaced),
            "{} cannot be kept to a namespace: it, or a type of its children, is in none",
            cycle.ruleset.kind()
        );
        cycle.name = format!("{}/{namespace}", cycle.controller);
        cycle.within = Some(namespace.to_owned());
        self
    }

    /// How many objects it looks at at once, and how soon.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// What becomes of deletions that do not come to their end.
    #[must_use]
    pub fn stalls(mut self, stalls: Stalls) -> Self {
        self.cycle.stalls = stalls;
        self
    }
}

/// The kind of a ruleset, as the API server has it.
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

/// What keeps an object until what it stands for is gone: the operator's own, or one for the sake of children
/// that nobody else would let go.
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
                // An error means that nobody can tell any more.
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

/// For as long as this replica works; it may be cut off anywhere.
struct Term<'a>(&'a Metrics);

impl Drop for Term<'_> {
    fn drop(&mut self) {
        // Whoever leads next tells how the objects stand.
        self.0.standing.clear();
        self.0.terminating.clear();
        self.0.failing.clear();
    }
}

#[cfg(test)]
mod tests;
