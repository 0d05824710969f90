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
mod tests {
    use std::sync::{Condvar, LazyLock, Mutex};
    use std::time::Duration;

    use kube::api::{DynamicObject, ObjectMeta};
    use kube::client::Body;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use shared_validation::{Candidate, Kind, Policy, Rule, Ruleset, Rulesets, Severity, Verdict};

    use super::*;
    use crate::cycle::Next;
    use crate::kept::Store;
    use crate::queue::Priority;
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

    fn cycle(metrics: &Metrics) -> Cycle<Panics> {
        cycle_of(Panics, metrics, CurrentPolicy::default())
    }

    fn cycle_of<R: Reconcile>(reconciler: R, metrics: &Metrics, policy: CurrentPolicy) -> Cycle<R> {
        let server = tower::service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::other("nobody is to be asked"))
        });
        let ruleset = Ruleset::<R::Kind>::compile().expect("it compiles");
        let looped = Loop::new(
            Client::new(server, "default"),
            Arc::new(ruleset),
            reconciler,
            metrics.clone(),
            policy,
        );
        looped.cycle
    }

    /// While one called `swayed` is judged, another policy comes into force; `long` takes as long as no other is judged.
    #[derive(Deserialize)]
    struct Slow {
        metadata: ObjectMeta,
    }

    static POLICY: LazyLock<CurrentPolicy> = LazyLock::new(CurrentPolicy::default);

    static OTHER_JUDGED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    impl Kind for Slow {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Slow";

        fn crd() -> Value {
            Trap::crd()
        }

        fn example() -> Value {
            json!({})
        }

        fn rules() -> Vec<Rule<Self>> {
            vec![Rule {
                id: "slow",
                sentence: "It takes its time.",
                severity: Severity::Error,
                source: "this test",
                reads: &["metadata.name"],
                check: |subject, findings| match subject.object.metadata.name.as_deref() {
                    Some("swayed") => POLICY.set(warning()),
                    Some("long") if !is_other_judged() => {
                        findings.invalid("metadata.name", "long", "nobody else was judged");
                    }
                    Some("long") => {}
                    _ => {
                        *OTHER_JUDGED.0.lock().expect("no panic") = true;
                        OTHER_JUDGED.1.notify_all();
                    }
                },
            }]
        }
    }

    fn warning() -> Policy {
        let file = json!({"rules": {"Slow": {"slow": "warn"}}});
        let ruleset = Ruleset::<Slow>::compile().expect("it compiles");
        let rulesets = Rulesets::default().with(Arc::new(ruleset));
        Policy::read(&file, &rulesets).expect("a policy")
    }

    fn is_other_judged() -> bool {
        let (is_judged, told) = &OTHER_JUDGED;
        let is_judged = is_judged.lock().expect("no panic");
        let waited = told.wait_timeout_while(is_judged, Duration::from_secs(20), |it| !*it);
        *waited.expect("no panic").0
    }

    /// Whether the verdicts are that nothing is wrong, and what they are told to have been made under.
    #[derive(Default)]
    struct Remembers(Arc<Mutex<Vec<(bool, Policy)>>>);

    #[async_trait]
    impl Reconcile for Remembers {
        type Kind = Slow;

        fn judged(
            &self,
            candidate: &Candidate<'_>,
            verdict: &Verdict,
        ) -> serde_json::Map<String, Value> {
            let policy = candidate.policy.cloned().unwrap_or_default();
            let mut told = self.0.lock().expect("no panic");
            told.push((verdict.is_valid(), policy));
            serde_json::Map::new()
        }

        async fn reconcile(&self, _: &SyncRequest<'_, Slow>) -> Result<Progress, ReconcileError> {
            Err(ReconcileError::Invalid(Vec::new()))
        }

        async fn finalize(&self, _: &Deleted<'_>) -> Result<Finalized, ReconcileError> {
            Ok(Finalized::Gone)
        }
    }

    /// What is told of objects of these names, once the rounds of all have ended; at once, as by the workers of a loop.
    async fn told_of(names: &[&str], policy: &CurrentPolicy) -> Vec<(bool, Policy)> {
        let metrics = Metrics::register(&mut Registry::default());
        let told = Arc::default();
        let cycle = cycle_of(Remembers(Arc::clone(&told)), &metrics, policy.clone());
        let objects = names.iter().map(|name| {
            let mut object = DynamicObject::new(name, &cycle.resource);
            object.metadata.uid = Some((*name).to_owned());
            object
        });
        let objects: Vec<_> = objects.collect();
        let rounds = objects.iter().map(|object| cycle.run(object, &[]));
        for ended in futures::future::join_all(rounds).await {
            assert!(ended.is_ok(), "{ended:?}");
        }
        told.lock().expect("no panic").clone()
    }

    #[tokio::test]
    async fn a_verdict_is_told_under_the_policy_that_it_was_made_under() {
        let told = told_of(&["swayed"], &POLICY).await;
        assert_ne!(*POLICY.get(), Policy::default(), "another is in force");
        assert_eq!(told, [(true, Policy::default())]);
    }

    #[tokio::test]
    async fn who_takes_long_to_judge_holds_nobody_up() {
        let told = told_of(&["long", "short"], &CurrentPolicy::default()).await;
        let valid: Vec<_> = told.iter().map(|(is_valid, _)| *is_valid).collect();
        assert_eq!(valid, [true; 2]);
    }

    #[tokio::test]
    async fn who_has_much_to_do_lets_others_have_their_turn() {
        let metrics = Metrics::register(&mut Registry::default());
        let queue = Queue::new(metrics.queue("trap"), Duration::ZERO);
        let worker = Worker {
            cycle: &cycle(&metrics),
            store: Store::default(),
            related: &[],
            queue: &queue,
        };
        // Gone already, so that nobody is waited for.
        for at in 0..10_000 {
            let key = (String::new(), format!("o{at}"));
            queue.add(key, Priority::Start, Duration::ZERO);
        }
        let others = async {
            let mut turns = 0;
            while !queue.waiting().ready.is_empty() {
                turns += 1;
                tokio::task::yield_now().await;
            }
            queue.close();
            turns
        };
        let (_all, complete) = watch::channel(0);
        let ((), turns) = tokio::join!(worker.work(complete), others);
        assert!(turns > 10, "{turns}");
    }

    #[tokio::test]
    async fn a_round_that_panics_is_counted_and_tried_again() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let cycle = cycle(&metrics);
        let worker = Worker {
            cycle: &cycle,
            store: Store::default(),
            related: &[],
            queue: &Queue::new(metrics.queue("trap"), Duration::ZERO),
        };
        let mut object = DynamicObject::new("a", &cycle.resource);
        object.metadata.uid = Some("1".to_owned());
        let first = worker.reconcile(&object).await;
        let second = worker.reconcile(&object).await;
        let after = |next| match next {
            Next::After(time) | Next::Failed(time) => time,
            Next::OnChange => Duration::ZERO,
        };
        assert!(after(first) > Duration::ZERO);
        assert!(after(second) > after(first), "{first:?}, {second:?}");
        let mut text = String::new();
        encode(&mut text, &registry).expect("metrics");
        for line in [
            "controller_runtime_reconcile_panics_total{controller=\"trap\"} 2",
            "controller_runtime_reconcile_total{controller=\"trap\",result=\"error\"} 2",
            // Twice, and not more often.
            "lockstep_failing_objects{controller=\"trap\",at_least=\"1\"} 1",
            "lockstep_failing_objects{controller=\"trap\",at_least=\"3\"} 0",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
