//! The watch that drives the cycle.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use futures::{FutureExt, Stream};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use shared_validation::{CurrentPolicy, Judge};
use tokio::sync::watch;
use tracing::Instrument;

use crate::announce::Announcer;
use crate::backoff::Backoffs;
use crate::children::{self, CONTROLLER_LABEL, ChildType, Observed};
use crate::cycle::{self, Cycle, Next};
use crate::metrics::Metrics;
use crate::pause;
use crate::predicate::{Change, generation_or_finalizers};
use crate::queue::{Priority, Queue};
use crate::reconcile::Reconcile;
use crate::watches::{self, Seen, Told};

/// How many objects are reconciled at once. External calls are slow, and AWS limits their rate.
const CONCURRENCY: usize = 8;

/// By how much of itself a delay is lengthened at most.
const JITTER: f64 = 0.1;

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
        let child_types = reconciler.children();
        let finalizer = finalizer(&*ruleset, &reconciler, &child_types);
        let announcer = Announcer::new(client.clone(), "lockstep");
        let backoffs = Backoffs::default();
        let cycle = Cycle {
            client,
            has_status: has_status(&*ruleset),
            resource,
            ruleset,
            reconciler,
            child_types,
            children: Observed::default(),
            finalizer,
            announcer,
            backoffs,
            metrics,
            policy,
        };
        Self { cycle }
    }
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
    reconciler: &R,
    child_types: &[ChildType],
) -> Option<String> {
    let is_namespaced = ruleset.crd()["spec"]["scope"] != "Cluster";
    let mut types = child_types.iter();
    let is_needed = types.any(|type_| type_.is_guarded || (is_namespaced && !type_.is_namespaced));
    let own = reconciler.finalizer().map(String::from);
    own.or_else(|| is_needed.then(|| format!("{}/finalizer", ruleset.group())))
}

#[async_trait]
impl<R: Reconcile> Run for Loop<R> {
    async fn run(self: Box<Self>, mut stop: watch::Receiver<bool>) {
        let cycle = &self.cycle;
        let controller = cycle.controller();
        let queue = Queue::new(cycle.metrics.queue(&controller));
        let writer = Writer::new(cycle.resource.clone());
        // How many watches have not yet told all that stands.
        let (incomplete, completing) = watch::channel(1 + cycle.child_types.len());
        let worker = Worker {
            cycle,
            controller: &controller,
            store: writer.as_reader(),
            queue: &queue,
            keys: Mutex::default(),
        };
        let complete = |is_first| {
            incomplete.send_modify(|watches| *watches -= usize::from(is_first));
        };
        let parents = worker.watch_parents(writer, complete);
        let children =
            (0..cycle.child_types.len()).map(|type_| worker.watch_children(type_, complete));
        let until_stopped = async {
            tokio::select! {
                // An error means that nobody can tell any more.
                _ = stop.wait_for(|stop| *stop) => {}
                _ = futures::future::join(parents, join_all(children)) => {}
            }
            queue.close();
        };
        let workers = (0..CONCURRENCY).map(|_| worker.work(completing.clone()));
        tokio::join!(until_stopped, join_all(workers));
        // Whoever leads next tells how the objects stand.
        cycle.metrics.standing.clear();
    }
}

/// An object by its namespace and name.
type Key = (String, String);

fn key_of(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Everything that happens to the objects of one kind.
fn events(
    client: &Client,
    resource: &ApiResource,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + use<> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let resource = resource.clone();
    watcher(api, config)
        .default_backoff()
        .modify(move |object| children::tidy(object, &resource))
}

/// One of those that take objects from the queue.
struct Worker<'a, R> {
    cycle: &'a Cycle<R>,
    controller: &'a str,
    store: Store<DynamicObject>,
    queue: &'a Queue<Key>,
    /// Where an object is, by its UID.
    keys: Mutex<HashMap<String, Key>>,
}

impl<R: Reconcile> Worker<'_, R> {
    /// Watches the objects that are reconciled.
    async fn watch_parents(&self, writer: Writer<DynamicObject>, complete: impl Fn(bool)) {
        let resource = &self.cycle.resource;
        let events = events(&self.cycle.client, resource, watcher::Config::default());
        let tell = |seen: &Seen<'_>| self.saw(seen);
        watches::follow(events, resource, writer, self.told(tell, complete)).await;
    }

    /// Watches the children of one type.
    async fn watch_children(&self, type_: usize, complete: impl Fn(bool)) {
        let resource = self.cycle.child_types[type_].resource();
        let ours = format!("{CONTROLLER_LABEL}={}", self.controller);
        let config = watcher::Config::default().labels(&ours);
        let events = events(&self.cycle.client, resource, config);
        let tell = |seen: &Seen<'_>| self.saw_child(type_, seen);
        let writer = Writer::new(resource.clone());
        let store = writer.as_reader();
        let complete = |is_first: bool| {
            self.cycle.children.began(type_, &store.state());
            complete(is_first);
        };
        watches::follow(events, resource, writer, self.told(tell, complete)).await;
    }

    /// Does what is the same for every watch.
    fn told(&self, saw: impl Fn(&Seen<'_>), complete: impl Fn(bool)) -> impl FnMut(Told<'_>) {
        let mut is_complete = false;
        move |news| match news {
            Told::Seen(seen) => saw(&seen),
            Told::Complete => complete(!std::mem::replace(&mut is_complete, true)),
            Told::Failed(error) => {
                let controller = self.controller;
                tracing::warn!(%error, controller, "the watch failed; trying again");
                self.cycle.metrics.watch_failed(controller);
            }
        }
    }

    /// Takes note of what a watch has brought.
    fn saw(&self, seen: &Seen<'_>) {
        let Change { before, after } = seen.change;
        if let Some(before) = before
            && after.is_none_or(|after| after.metadata.uid != before.metadata.uid)
        {
            self.cycle
                .forget(before.metadata.uid.as_deref().unwrap_or_default());
        }
        self.note_key(&seen.change);
        // Without our own status writes.
        let is_worth_a_round =
            generation_or_finalizers(&seen.change) || pause::begins_or_ends(&seen.change);
        let Some(object) = after.or(before).filter(|_| is_worth_a_round) else {
            return;
        };
        let key = key_of(object);
        if after.is_none() {
            return self.queue.remove(&key);
        }
        let priority = if seen.is_news {
            Priority::Change
        } else {
            Priority::Start
        };
        self.queue.add(key, priority, Duration::ZERO);
    }

    /// Takes note of what a watch has brought of a child: a round for whose it is.
    fn saw_child(&self, type_: usize, seen: &Seen<'_>) {
        let owners = self.cycle.children.saw(type_, &seen.change);
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is not known yet gets its round when it comes.
        for key in owners.iter().filter_map(|owner| keys.get(owner)) {
            self.queue
                .add(key.clone(), Priority::Change, Duration::ZERO);
        }
    }

    fn note_key(&self, change: &Change<'_, DynamicObject>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = change.before.and_then(|before| before.uid()) {
            keys.remove(&uid);
        }
        if let Some(after) = change.after
            && let Some(uid) = after.uid()
        {
            keys.insert(uid, key_of(after));
        }
    }

    /// Works until the queue is closed, once all is known that there is.
    async fn work(&self, mut incomplete: watch::Receiver<usize>) {
        tokio::select! {
            _ = incomplete.wait_for(|watches| *watches == 0) => {}
            () = self.queue.closed() => {}
        }
        while let Some(key) = self.queue.next().await {
            let next = match self.stored(&key) {
                Some(object) => self.reconcile(&object).await,
                None => Next::OnChange,
            };
            let again_after = match next {
                Next::OnChange => None,
                // What was done together is not asked for together for ever.
                Next::After(time) => Some(time.mul_f64(1.0 + JITTER * fastrand::f64())),
            };
            self.queue.done(&key, again_after);
        }
    }

    fn stored(&self, (namespace, name): &Key) -> Option<Arc<DynamicObject>> {
        let reference = ObjectRef::new_with(name, self.cycle.resource.clone());
        self.store.get(&reference.within(namespace))
    }

    /// One round, with its failure turned into a backoff.
    async fn reconcile(&self, object: &DynamicObject) -> Next {
        let started = Instant::now();
        let span = tracing::info_span!(
            "reconcile",
            controller = self.controller,
            namespace = object.namespace().unwrap_or_default(),
            name = object.name_any(),
            generation = object.metadata.generation,
        );
        let round = AssertUnwindSafe(self.cycle.run(object).instrument(span.clone()));
        let (next, result) = match round.catch_unwind().await {
            Ok(Ok(next)) => (next, "success"),
            // Gone in the meantime: a deletion has nothing left to wait for.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => (Next::OnChange, "success"),
            Ok(Err(error)) => {
                let after = cycle::failure(self.cycle, object);
                span.in_scope(|| tracing::warn!(%error, ?after, "the round did not finish"));
                (Next::After(after), "error")
            }
            Err(_) => {
                let after = cycle::failure(self.cycle, object);
                span.in_scope(|| tracing::error!(?after, "the round panicked"));
                self.cycle.metrics.panicked(self.controller);
                (Next::After(after), "error")
            }
        };
        let elapsed = started.elapsed();
        self.cycle.metrics.round(self.controller, result, elapsed);
        next
    }
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use shared_validation::{Kind, Rule, Ruleset};

    use super::*;
    use crate::reconcile::{Deleted, Finalized, Progress, ReconcileError};
    use crate::request::SyncRequest;

    #[derive(Deserialize)]
    struct Trap {}

    impl Kind for Trap {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Trap";

        fn crd() -> Value {
            json!({"spec": {
                "group": "example.com",
                "names": {"kind": "Trap", "plural": "traps"},
                "versions": [{"name": "v1", "served": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}],
            }})
        }

        fn example() -> Value {
            json!({})
        }

        fn rules() -> Vec<Rule<Self>> {
            Vec::new()
        }
    }

    struct Panics;

    #[async_trait]
    impl Reconcile for Panics {
        type Kind = Trap;

        fn identity(&self, _: &Trap) -> serde_json::Map<String, Value> {
            panic!("on purpose")
        }

        async fn reconcile(&self, _: &SyncRequest<'_, Trap>) -> Result<Progress, ReconcileError> {
            panic!("on purpose")
        }

        async fn finalize(&self, _: &Deleted<'_>) -> Result<Finalized, ReconcileError> {
            panic!("on purpose")
        }
    }

    #[tokio::test]
    async fn a_round_that_panics_is_counted_and_tried_again() {
        let server = tower::service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::other("nobody is to be asked"))
        });
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let ruleset = Ruleset::<Trap>::compile().expect("it compiles");
        let Loop { cycle } = Loop::new(
            Client::new(server, "default"),
            Arc::new(ruleset),
            Panics,
            metrics.clone(),
            CurrentPolicy::default(),
        );
        let worker = Worker {
            cycle: &cycle,
            controller: "trap",
            store: Writer::new(cycle.resource.clone()).as_reader(),
            queue: &Queue::new(metrics.queue("trap")),
            keys: Mutex::default(),
        };
        let mut object = DynamicObject::new("a", &cycle.resource);
        object.metadata.uid = Some("1".to_owned());
        let first = worker.reconcile(&object).await;
        let second = worker.reconcile(&object).await;
        let after = |next| match next {
            Next::After(time) => time,
            Next::OnChange => Duration::ZERO,
        };
        assert!(after(first) > Duration::ZERO);
        assert!(after(second) > after(first), "{first:?}, {second:?}");
        let mut text = String::new();
        encode(&mut text, &registry).expect("metrics");
        for line in [
            "controller_runtime_reconcile_panics_total{controller=\"trap\"} 2",
            "controller_runtime_reconcile_total{controller=\"trap\",result=\"error\"} 2",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
