//! Children that depend on one another.

use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_controller::{
    Metrics, OwnedType, ReconcileError, SyncReconciler, SyncRequest, SyncResponse,
};
use lockstep_shared_validation::ValidatedResource;
use lockstep_test::{
    DeterminismCheck, RunningController, apply, cluster_with, objects, operator, toy_crd,
    wait_for_condition,
};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};

/// Object with children that are created one after another, each once the previous one exists.
#[derive(Deserialize)]
struct Stair {}

impl ValidatedResource for Stair {
    const GROUP: &'static str = "toys.example.com";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Stair";

    fn crd() -> Value {
        let count = json!({"type": "integer"});
        let status = json!({"type": "object", "properties": {"steps": count}});
        toy_crd("Stair", "stairs", "Namespaced", &json!({"status": status}))
    }

    fn example() -> Value {
        json!({})
    }
}

fn sync(request: &SyncRequest<'_, Stair>) -> Result<SyncResponse, ReconcileError> {
    let mut response = SyncResponse::new().reads_children();
    let mut steps = 0;
    for name in ["first", "second", "third"] {
        response = response.child(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
        }))?;
        if request.children().get::<ConfigMap>(name)?.is_none() {
            break;
        }
        steps += 1;
    }
    response.status(&json!({"steps": steps}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_reads_its_children_is_called_again_after_they_are_created() {
    let cluster = cluster_with::<Stair>().await;
    let handler =
        SyncReconciler::new(DeterminismCheck(sync)).owns([OwnedType::namespaced::<ConfigMap>()]);
    let metrics = Metrics::register(&mut Registry::default());
    let _running = RunningController::start(operator(cluster.client(), handler, &metrics));
    let stairs = objects::<Stair>(cluster.client(), Some("default"));
    apply::<Stair>(&stairs, "a", &json!({})).await;
    lockstep_test::wait_until(&stairs, "a", "to have created all children", |found| {
        found.is_some_and(|found| found.data["status"]["steps"] == 3)
    })
    .await;
    wait_for_condition(&stairs, "a", "Ready", "True").await;
}
