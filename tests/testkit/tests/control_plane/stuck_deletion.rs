//! Objects with a stalled deletion.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use lockstep_controller::{
    DeletionTimeouts, FinalizeOutcome, FinalizeRequest, Metrics, ReconcileError, SyncHandler,
    SyncReconciler, SyncRequest, SyncResponse,
};
use lockstep_envtest::eventually;
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    RunningController, apply, cluster_with, objects, operator, toy_crd, wait_for_condition,
    wait_until,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

/// Object that represents something that cannot be removed.
#[derive(Deserialize)]
struct Stain {}

impl ValidatedResource for Stain {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Stain";

    fn crd() -> Value {
        let status = json!({"type": "object", "properties": {"spot": {"type": "string"}}});
        toy_crd("Stain", "stains", "Namespaced", &json!({"status": status}))
    }

    fn example() -> Value {
        json!({})
    }
}

struct Indelible;

impl SyncHandler<Stain> for Indelible {
    fn sync(&self, _: &SyncRequest<'_, Stain>) -> Result<SyncResponse, ReconcileError> {
        SyncResponse::new().status(&json!({"spot": "on the carpet"}))
    }

    fn finalize(&self, _: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Err(ReconcileError::Transient {
            reason: "Indelible",
            message: "it does not come out".to_owned(),
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_deletion_is_reported_and_is_forced_if_configured() {
    let cluster = cluster_with::<Stain>().await;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let start = |let_go_after| {
        let handler = SyncReconciler::new(Indelible).finalizer("toys.example.com/indelible");
        let timeouts = DeletionTimeouts {
            stalled_after: Duration::from_secs(1),
            force_after: let_go_after,
        };
        RunningController::start(
            operator(cluster.client(), handler, &metrics).with_deletion_timeouts(timeouts),
        )
    };
    let running = start(None);
    let stains = objects::<Stain>(cluster.client(), Some("default"));
    apply::<Stain>(&stains, "a", &json!({})).await;
    wait_for_condition(&stains, "a", "Ready", "True").await;

    stains
        .delete("a", &DeleteParams::default())
        .await
        .expect("the API server accepts the deletion");
    let (reason, message) = wait_for_condition(&stains, "a", "DeletionStalled", "True").await;
    assert_eq!(reason, "FinalizerStalled");
    assert!(
        message.ends_with("has not finished: it does not come out"),
        "{message}"
    );
    let mut text = String::new();
    encode(&mut text, &registry).expect("the metrics can be encoded");
    let going = "lockstep_terminating_objects{controller=\"stain\",threshold=\"0s\"} 1";
    assert!(text.contains(going), "{text}");
    let events: Api<Event> = Api::namespaced(cluster.client(), "default");
    let notes = async |reason: &str| {
        let all = events
            .list(&ListParams::default())
            .await
            .expect("the API server lists Events")
            .items;
        let of_reason = all
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason));
        of_reason.filter_map(|event| event.note).collect::<Vec<_>>()
    };
    assert_eq!(notes("DeletionStalled").await, [message]);

    // The finalizer is removed by force, as configured.
    running.stop().await;
    let running = start(Some(Duration::from_secs(1)));
    wait_until(&stains, "a", "to be deleted", |found| found.is_none()).await;
    let found = eventually("an Event that names the leaked resources", async || {
        let found = notes("ResourcesLeaked").await;
        (!found.is_empty()).then_some(found)
    });
    let expected = "finalizer removed before cleanup completed; leaked: {\"spot\":\"on the carpet\"}; it does not come out";
    assert_eq!(found.await.expect("the Event is created"), [expected]);
    // Both Events are created only once, although several reconciliations have run.
    assert_eq!(notes("DeletionStalled").await.len(), 1);
    running.stop().await;
}
