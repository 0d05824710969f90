//! Concurrency, debounce, rate limits and shutdown of a controller.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lockstep_controller::{
    Config, ControllerRegistry, FinalizeOutcome, FinalizeRequest, Metrics, RateLimiter, Readiness,
    ReconcileError, ReconcileOutput, ReconcileTrigger, Reconciler, SyncRequest,
};
use lockstep_envtest::{Cluster, eventually, stays};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    RunningController, apply, cluster_with, objects, operator, toy_crd, wait_for_condition,
};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

#[derive(Deserialize)]
struct Slow {}

impl ValidatedResource for Slow {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Slow";

    fn crd() -> Value {
        let size = json!({"type": "integer"});
        let spec = json!({"type": "object", "properties": {"size": size}});
        toy_crd("Slow", "slows", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {}})
    }
}

/// Reconciler that blocks on each object until the test releases it.
#[derive(Clone)]
struct Worker(Arc<Work>);

struct Work {
    under_way: AtomicUsize,
    begun: AtomicUsize,
    may_end: Semaphore,
}

#[async_trait]
impl Reconciler for Worker {
    type Kind = Slow;

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Slow>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        self.0.under_way.fetch_add(1, Ordering::SeqCst);
        let may_end = self.0.may_end.acquire().await;
        may_end.expect("the semaphore is never closed").forget();
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        Ok(ReconcileOutput {
            readiness: Some(Readiness {
                ready: true,
                reason: "Done",
                message: String::new(),
            }),
            requeue_after: Duration::from_hours(1),
            ..ReconcileOutput::default()
        })
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

struct Works {
    cluster: Cluster,
    work: Arc<Work>,
    directory: ControllerRegistry,
    running: RunningController,
}

impl Works {
    /// Starts a controller. Its first `free` reconciliations do not block.
    async fn start(config: Config, calls: &RateLimiter, free: usize) -> Self {
        let cluster = cluster_with::<Slow>().await;
        let work = Arc::new(Work {
            under_way: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            may_end: Semaphore::new(free),
        });
        let metrics = Metrics::register(&mut Registry::default());
        let worker = Worker(Arc::clone(&work));
        let run = operator(rate_limited_client(&cluster, calls).await, worker, &metrics);
        let directory = ControllerRegistry::default();
        let running = RunningController::start(run.with_config(config).register_in(&directory));
        Self {
            cluster,
            work,
            directory,
            running,
        }
    }

    fn objects(&self) -> Api<DynamicObject> {
        objects::<Slow>(self.cluster.client(), Some("default"))
    }

    async fn make(&self, count: usize) {
        self.make_in(&self.objects(), count).await;
    }

    async fn make_in(&self, objects: &Api<DynamicObject>, count: usize) {
        for at in 0..count {
            apply::<Slow>(objects, &format!("s{at}"), &json!({"spec": {}})).await;
        }
    }

    async fn begun(&self, count: usize) {
        let begun = eventually("reconciliations to start", async || {
            (self.work.begun.load(Ordering::SeqCst) >= count).then_some(())
        });
        begun.await.expect("the reconciliations start");
    }
}

async fn rate_limited_client(cluster: &Cluster, calls: &RateLimiter) -> Client {
    let kubeconfig =
        Kubeconfig::read_from(cluster.kubeconfig()).expect("the kubeconfig is readable");
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let builder = ClientBuilder::try_from(config.expect("the kubeconfig is valid"))
        .expect("the configuration makes a client");
    builder.with_layer(calls).build()
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrency_is_limited_and_reconciliations_in_progress_finish_on_shutdown() {
    let three = Config {
        max_concurrent_reconciles: NonZeroUsize::new(3).expect("not zero"),
        ..Config::default()
    };
    let works = Works::start(three, &RateLimiter::unlimited(), 0).await;
    works.make(6).await;
    works.begun(3).await;
    let half = Duration::from_millis(500);
    let at_once = async || works.work.under_way.load(Ordering::SeqCst);
    stays(half, "the number of concurrent reconciliations", at_once).await;
    assert_eq!(at_once().await, 3);

    let mut stopped = tokio::spawn(works.running.stop());
    let early = tokio::time::timeout(half, &mut stopped).await;
    assert!(
        early.is_err(),
        "shutdown did not wait for the reconciliations in progress"
    );
    works.work.may_end.add_permits(3);
    stopped.await.expect("the controller stops");
    assert_eq!(
        works.work.begun.load(Ordering::SeqCst),
        3,
        "a reconciliation started after shutdown"
    );
    let api = objects::<Slow>(works.cluster.client(), Some("default"));
    let mut completed = 0;
    for object in api
        .list(&ListParams::default())
        .await
        .expect("the API server lists the objects")
    {
        completed += usize::from(object.data["status"].to_string().contains("Done"));
    }
    assert_eq!(
        completed, 3,
        "the reconciliations in progress must write their status"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_one_namespace_leave_workers_to_another() {
    let works = Works::start(Config::default(), &RateLimiter::unlimited(), 0).await;
    works.make(20).await;
    works.begun(7).await;
    let begun = async || works.work.begun.load(Ordering::SeqCst);
    stays(
        Duration::from_millis(500),
        "the number of reconciliations",
        begun,
    )
    .await;
    assert_eq!(begun().await, 7);

    let other = objects::<Slow>(works.cluster.client(), Some("kube-public"));
    works.make_in(&other, 3).await;
    works.begun(8).await;
    // The next one is of the namespace with fewer objects in work, although those of the other one have waited for longer.
    works.work.may_end.add_permits(12);
    wait_for_condition(&other, "s2", "Ready", "True").await;
    works.work.may_end.add_permits(20);
    works.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_are_debounced_and_a_channel_triggers_a_reconciliation() {
    let slow = Config {
        debounce: Duration::from_secs(2),
        ..Config::default()
    };
    let works = Works::start(slow, &RateLimiter::unlimited(), usize::MAX >> 4).await;
    works.make(1).await;
    wait_for_condition(&works.objects(), "s0", "Ready", "True").await;
    let before = works.work.begun.load(Ordering::SeqCst);
    for size in 1..=10 {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        let changed = works
            .objects()
            .patch("s0", &PatchParams::default(), &patch)
            .await;
        changed.expect("the API server stores the change");
    }
    wait_for_condition(&works.objects(), "s0", "Ready", "True").await;
    let after = works.work.begun.load(Ordering::SeqCst);
    assert!(
        after - before < 5,
        "{} reconciliations for ten simultaneous changes",
        after - before
    );

    let (sender, triggers) = mpsc::unbounded_channel();
    let directory = works.directory.clone();
    let triggers = futures::stream::unfold(triggers, async |mut triggers| {
        Some((triggers.recv().await?, triggers))
    });
    let following = tokio::spawn(async move { directory.run_triggers(triggers.boxed()).await });
    for controller in ["unknown", "slow"] {
        let sent = sender.send(ReconcileTrigger {
            controller: controller.to_owned(),
            namespace: Some("default".to_owned()),
            name: "s0".to_owned(),
        });
        sent.expect("the receiver is open");
    }
    works.begun(after + 1).await;
    drop(sender);
    following
        .await
        .expect("the task ends when the channel is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_the_api_server_are_rate_limited() {
    const OBJECTS: usize = 30;
    let rate = |count| NonZeroU32::new(count).expect("not zero");
    let calls = RateLimiter::new(rate(5), rate(5));
    let works = Works::start(Config::default(), &calls, usize::MAX >> 4).await;
    let begun = Instant::now();
    works.make(OBJECTS).await;
    let reported = eventually("all objects to have a status", async || {
        let all = works.objects().list(&ListParams::default()).await.ok()?;
        let mut statuses = all.items.iter().map(|object| &object.data["status"]);
        statuses.all(|status| status.is_object()).then_some(())
    });
    reported.await.expect("all objects get a status");
    // One status patch for each object; the first few are within the burst.
    let least = Duration::from_secs((OBJECTS as u64 - 5) / 5);
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
}
