//! Controllers without an API server.

mod not_served;
mod released_shards;
mod unconfirmed_status;
mod validation;

use std::time::Duration;

use kube::api::DynamicObject;
use kube::client::Body;
use lockstep_shared_validation::{Ruleset, ValidatedResource};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::error::ReconcileError;
use crate::api::reconciler::{FinalizeOutcome, FinalizeRequest, ReconcileOutput};
use crate::api::request::SyncRequest;
use crate::cache::object_key::ObjectKey;
use crate::cache::store::Store;
use crate::controller::*;
use crate::queue::ready_keys::Priority;
use crate::reconcile::action::Action;

#[derive(Deserialize)]
struct Trap {}

impl ValidatedResource for Trap {
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

#[derive(Default)]
struct Panics {
    /// UIDs of the objects that it was to forget.
    forgotten: parking_lot::Mutex<Vec<String>>,
}

#[async_trait]
impl Reconciler for Panics {
    type Kind = Trap;

    async fn status_identity(
        &self,
        _: &SyncRequest<'_, Trap>,
    ) -> Result<serde_json::Map<String, Value>, ReconcileError> {
        panic!("on purpose")
    }

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Trap>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        panic!("on purpose")
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        panic!("on purpose")
    }

    fn forget(&self, uid: &str) {
        self.forgotten.lock().push(uid.to_owned());
    }
}

fn context(metrics: &Metrics) -> Context<Panics> {
    context_of(Panics::default(), metrics, PolicyHandle::default())
}

fn context_of<R: Reconciler>(reconciler: R, metrics: &Metrics, policy: PolicyHandle) -> Context<R> {
    let server = tower::service_fn(|_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(std::io::Error::other("no request is expected"))
    });
    context_with(Client::new(server, "default"), reconciler, metrics, policy)
}

fn context_with<R: Reconciler>(
    client: Client,
    reconciler: R,
    metrics: &Metrics,
    policy: PolicyHandle,
) -> Context<R> {
    let ruleset = Ruleset::<R::Kind>::compile().expect("it compiles");
    let looped = Controller::new(
        "lockstep",
        client,
        Arc::new(ruleset),
        reconciler,
        metrics.clone(),
        policy,
    );
    looped.context
}

#[tokio::test]
async fn a_busy_worker_yields_to_other_tasks() {
    let metrics = Metrics::register(&mut Registry::default());
    let queue = Queue::new(metrics.queue("trap"), Duration::ZERO, None);
    let worker = Worker {
        context: &context(&metrics),
        store: Store::default(),
        related: &[],
        queue: &queue,
    };
    // The objects do not exist, so nothing is awaited.
    for at in 0..10_000 {
        let key = ObjectKey::new("", &format!("o{at}"));
        queue.add(key, Priority::Initial, Duration::ZERO);
    }
    let others = async {
        let mut turns = 0;
        while !queue.snapshot().ready.is_empty() {
            turns += 1;
            tokio::task::yield_now().await;
        }
        queue.close();
        turns
    };
    let (_all, complete) = watch::channel(0);
    let ((), turns) = tokio::join!(worker.run(complete), others);
    assert!(turns > 10, "{turns}");
}

#[tokio::test]
async fn a_reconciliation_that_panics_is_counted_and_retried() {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let context = context(&metrics);
    let worker = Worker {
        context: &context,
        store: Store::default(),
        related: &[],
        queue: &Queue::new(metrics.queue("trap"), Duration::ZERO, None),
    };
    let mut object = DynamicObject::new("a", &context.resource);
    object.metadata.uid = Some("1".to_owned());
    let first = worker.reconcile(&object, None).await;
    let second = worker.reconcile(&object, None).await;
    let after = |next| match next {
        Action::RequeueAfter(time) | Action::Backoff(time) => time,
        Action::AwaitChange => Duration::ZERO,
    };
    assert!(after(first) > Duration::ZERO);
    assert!(after(second) > after(first), "{first:?}, {second:?}");
    let mut text = String::new();
    encode(&mut text, &registry).expect("metrics");
    for line in [
        "controller_runtime_reconcile_panics_total{controller=\"trap\"} 2",
        "controller_runtime_reconcile_total{controller=\"trap\",result=\"error\"} 2",
        // Exactly two failures.
        "lockstep_failing_objects{controller=\"trap\",threshold=\"1\"} 1",
        "lockstep_failing_objects{controller=\"trap\",threshold=\"3\"} 0",
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
}
