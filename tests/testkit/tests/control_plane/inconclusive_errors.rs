//! Readiness of objects whose reconciliation fails without a statement about what they manage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::{Patch, PatchParams};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, Metrics, OperatorCondition, Readiness, ReconcileError,
    ReconcileOutput, Reconciler, SyncRequest,
};
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

/// Reconciler whose external system can be unreachable.
struct Rotator {
    is_reachable: Arc<AtomicBool>,
}

fn aligned(is_true: bool, reason: &'static str) -> OperatorCondition {
    OperatorCondition {
        type_: "Aligned",
        is_true,
        reason,
        message: String::new(),
    }
}

#[async_trait::async_trait]
impl Reconciler for Rotator {
    type Kind = Antenna;

    async fn reconcile(
        &self,
        _: &SyncRequest<'_, Antenna>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        if !self.is_reachable.load(Ordering::SeqCst) {
            let error = ReconcileError::transient("RotatorUnreachable", "it does not answer");
            return Err(error.inconclusive());
        }
        Ok(ReconcileOutput {
            readiness: Some(Readiness {
                ready: true,
                reason: "Turned",
                message: String::new(),
            }),
            conditions: vec![aligned(true, "Turned")],
            ..ReconcileOutput::default()
        })
    }

    fn conditions_on_error(&self, error: &ReconcileError) -> Vec<OperatorCondition> {
        vec![aligned(false, error.reason())]
    }

    async fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_stays_ready_only_with_its_current_spec() {
    let cluster = cluster_with::<Antenna>().await;
    let is_reachable = Arc::new(AtomicBool::new(true));
    let reconciler = Rotator {
        is_reachable: Arc::clone(&is_reachable),
    };
    let metrics = Metrics::register(&mut Registry::default());
    let running = RunningController::start(operator(cluster.client(), reconciler, &metrics));
    let antennas = objects::<Antenna>(cluster.client(), Some("default"));
    let wait_for = async |status: &str, reason: &str| {
        for type_ in ["Ready", "Aligned"] {
            let (found, _) = wait_for_condition(&antennas, "a", type_, status).await;
            assert_eq!(found, reason, "{type_}");
        }
    };
    apply::<Antenna>(&antennas, "a", &json!({"spec": {"angle": 10}})).await;
    wait_for("True", "Turned").await;

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
    wait_for("True", "Turned").await;

    apply::<Antenna>(&antennas, "a", &json!({"spec": {"angle": 20}})).await;
    wait_for("False", "RotatorUnreachable").await;

    is_reachable.store(true, Ordering::SeqCst);
    wait_for("True", "Turned").await;
    running.stop().await;
}
