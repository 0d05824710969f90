//! The watch that drives the cycle.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{Controller, Predicate, PredicateConfig, WatchStreamExt, predicates, watcher};
use shared_validation::{CurrentPolicy, Judge};
use tokio::sync::watch;
use tracing::Instrument;

use crate::announce::Announcer;
use crate::backoff::Backoffs;
use crate::cycle::{self, Cycle};
use crate::known::Known;
use crate::metrics::{ControllerLabels, Metrics, ResultLabels};
use crate::reconcile::Reconcile;

/// How many objects are reconciled at once. External calls are slow, and AWS limits their rate.
const CONCURRENCY: u16 = 8;

/// The loop of one kind.
pub struct Loop<R> {
    cycle: Cycle<R>,
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
    pub fn new(
        client: Client,
        ruleset: Arc<dyn Judge>,
        reconciler: R,
        metrics: Metrics,
        policy: CurrentPolicy,
    ) -> Self {
        let gvk = GroupVersionKind::gvk(ruleset.group(), ruleset.version(), ruleset.kind());
        let plural = ruleset.crd()["spec"]["names"]["plural"]
            .as_str()
            .unwrap_or_default();
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let announcer = Announcer::new(client.clone(), "lockstep");
        let backoffs = Backoffs::default();
        let cycle = Cycle {
            client,
            resource,
            ruleset,
            reconciler,
            announcer,
            backoffs,
            metrics,
            policy,
        };
        Self { cycle }
    }
}

#[async_trait]
impl<R: Reconcile> Run for Loop<R> {
    async fn run(self: Box<Self>, mut stop: watch::Receiver<bool>) {
        let cycle = Arc::new(self.cycle);
        let mut known = Known::default();
        let watched = Arc::clone(&cycle);
        let api: Api<DynamicObject> = Api::all_with(cycle.client.clone(), &cycle.resource);
        let writer = Writer::new(cycle.resource.clone());
        let reader = writer.as_reader();
        let stored = reader.clone();
        let resource = cycle.resource.clone();
        // Without our own status writes: they change neither.
        let changes = predicates::generation.combine(predicates::finalizers);
        let stream = watcher(api, watcher::Config::default())
            .default_backoff()
            .inspect_err(|error| tracing::warn!(%error, "the watch failed; trying again"))
            .reflect(writer)
            .inspect_ok(move |event| {
                for uid in known.gone(event, || uids(&stored)) {
                    watched.forget(&uid);
                }
            })
            .applied_objects()
            .predicate_filter(changes, PredicateConfig::default());
        Controller::for_stream_with(stream, reader, resource)
            .with_config(Config::default().concurrency(CONCURRENCY))
            .graceful_shutdown_on(async move {
                // An error means that nobody can tell any more.
                let _ = stop.wait_for(|stop| *stop).await;
            })
            .run(
                reconcile,
                |_, error: &Infallible, _| match *error {},
                Arc::clone(&cycle),
            )
            .for_each(|result| {
                if let Err(error) = result {
                    tracing::debug!(%error, "the queue");
                }
                std::future::ready(())
            })
            .await;
        // Whoever leads next tells how the objects stand.
        cycle.metrics.standing.clear();
    }
}

/// The objects of a store.
pub(crate) fn uids(store: &Store<DynamicObject>) -> HashSet<String> {
    let objects = store.state();
    objects
        .iter()
        .filter_map(|object| object.metadata.uid.clone())
        .collect()
}

/// One round, with its failure turned into a backoff.
async fn reconcile<R: Reconcile>(
    object: Arc<DynamicObject>,
    cycle: Arc<Cycle<R>>,
) -> Result<Action, Infallible> {
    let started = Instant::now();
    let controller = cycle.ruleset.kind().to_lowercase();
    let span = tracing::info_span!(
        "reconcile",
        controller,
        namespace = object.namespace().unwrap_or_default(),
        name = object.name_any(),
        generation = object.metadata.generation,
    );
    let (action, result) = match cycle.run(&object).instrument(span.clone()).await {
        Ok(action) => (action, "success"),
        // Gone in the meantime: a deletion has nothing left to wait for.
        Err(kube::Error::Api(status)) if status.code == 404 => (Action::await_change(), "success"),
        Err(error) => {
            let after = cycle::api_failure(&cycle, &object);
            span.in_scope(|| tracing::warn!(%error, ?after, "the round did not finish"));
            (Action::requeue(after), "error")
        }
    };
    cycle
        .metrics
        .reconciles
        .get_or_create(&ResultLabels {
            controller: controller.clone(),
            result,
        })
        .inc();
    cycle
        .metrics
        .duration
        .get_or_create(&ControllerLabels { controller })
        .observe(started.elapsed().as_secs_f64());
    Ok(action)
}
