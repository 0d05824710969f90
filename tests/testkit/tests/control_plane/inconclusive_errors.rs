//! Readiness of objects whose reconciliation fails without a statement about what they manage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::{Patch, PatchParams};
use lockstep_controller::{Metrics, ReconcileError, SyncReconciler, SyncRequest, SyncResponse};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    RunningController, apply, cluster_with, objects, operator, toy_crd, wait_for_condition,
    wait_until,
};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

/// Object that is managed in another system.
#[derive(Deserialize)]
struct Antenna {}

impl ValidatedResource for Antenna {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Antenna";

    fn crd() -> Value {
        let spec = json!({"type": "object", "properties": {"angle": {"type": "integer"}}});
        toy_crd("Antenna", "antennas", "Namespaced", &json!({"spec": spec}))
    }

    fn example() -> Value {
        json!({"spec": {"angle": 0}})
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_stays_ready_only_with_its_current_spec() {
    let cluster = cluster_with::<Antenna>().await;
    let is_reachable = Arc::new(AtomicBool::new(true));
    let reconciler = SyncReconciler::new({
        let is_reachable = Arc::clone(&is_reachable);
        move |_: &SyncRequest<'_, Antenna>| {
            if is_reachable.load(Ordering::SeqCst) {
                return Ok(SyncResponse::new());
            }
            let message = "the rotator does not answer";
            Err(ReconcileError::transient("RotatorUnreachable", message).inconclusive())
        }
    });
    let metrics = Metrics::register(&mut Registry::default());
    let running = RunningController::start(operator(cluster.client(), reconciler, &metrics));
    let antennas = objects::<Antenna>(cluster.client(), Some("default"));
    apply::<Antenna>(&antennas, "a", &json!({"spec": {"angle": 10}})).await;
    wait_for_condition(&antennas, "a", "Ready", "True").await;

    is_reachable.store(false, Ordering::SeqCst);
    let request =
        json!({"metadata": {"annotations": {"lockstep.dev/reconcile-requested-at": "now"}}});
    antennas
        .patch("a", &PatchParams::default(), &Patch::Merge(request))
        .await
        .expect("the annotation is stored");
    wait_until(&antennas, "a", "to be reconciled again", |found| {
        found.is_some_and(|found| found.data["status"]["lastHandledReconcileAt"] == "now")
    })
    .await;
    wait_for_condition(&antennas, "a", "Ready", "True").await;

    apply::<Antenna>(&antennas, "a", &json!({"spec": {"angle": 20}})).await;
    let (reason, message) = wait_for_condition(&antennas, "a", "Ready", "False").await;
    assert_eq!(reason, "RotatorUnreachable");
    assert_eq!(message, "the rotator does not answer");

    is_reachable.store(true, Ordering::SeqCst);
    wait_for_condition(&antennas, "a", "Ready", "True").await;
    running.stop().await;
}
