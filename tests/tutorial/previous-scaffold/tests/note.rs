//! The controller of Note objects, on a real control plane.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams};
use lockstep_sdk::controller::Metrics;
use lockstep_test::{
    RunningController, apply, cluster_with, operator, wait_for_condition, wait_until,
};
use note_operator::note::{self, Note};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_text_is_stored_in_a_config_map() {
    let cluster = cluster_with::<Note>().await;
    let objects = lockstep_test::objects::<Note>(cluster.client(), Some("default"));
    let config_maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let controller = operator(cluster.client(), note::operator(), &Metrics::default());
    let controller = RunningController::start(controller);

    apply::<Note>(&objects, "hello", &json!({"spec": {"text": "Hello!"}})).await;
    wait_for_condition(&objects, "hello", "Ready", "True").await;
    let config_map = config_maps.get("hello-notes").await.expect("a ConfigMap");
    let data = config_map.data.expect("data");
    assert_eq!(data["text"], "Hello!");
    assert_eq!(data["language"], "en");

    apply::<Note>(&objects, "hello", &json!({"spec": {"text": "Good day!"}})).await;
    wait_for_condition(&objects, "hello", "Ready", "True").await;
    let config_map = config_maps.get("hello-notes").await.expect("a ConfigMap");
    assert_eq!(config_map.data.expect("data")["text"], "Good day!");

    let deleted = objects.delete("hello", &DeleteParams::default()).await;
    deleted.expect("the API server accepts the deletion");
    wait_until(&objects, "hello", "to be deleted", |found| found.is_none()).await;
    controller.stop().await;
}
