//! Update strategies: handling of a child that differs from its desired state.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::children::fixture_kind::Toys;

fn job(image: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": image}],
        }}},
    })
}

fn service(port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": port}]},
    })
}

fn secret(password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "p"},
        "stringData": {"password": password},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_recreated_or_left_unchanged_according_to_the_strategy_of_its_type() {
    let toys = Toys::start().await;
    let [jobs, services, secrets] =
        ["Job", "Service", "Secret"].map(|type_| toys.of(type_, Some("default")));
    let apply = async |children: &[Value]| {
        toys.apply("Family", "a", &json!({"children": children}))
            .await;
    };
    apply(&[job("i:1"), service(80), secret("one")]).await;
    let there = |found: Option<&kube::api::DynamicObject>| found.is_some();
    let first_job = toys
        .wait_until(&jobs, "j", "to be created", there)
        .await
        .expect("the child exists");
    let first_secret = toys
        .wait_until(&secrets, "p", "to be created", there)
        .await
        .expect("the child exists");
    assert_eq!(first_secret.data["data"]["password"], "b25l");
    toys.wait_until(&services, "s", "to be created", there)
        .await;

    apply(&[job("i:2"), service(81), secret("two")]).await;
    // The template of a Job is immutable.
    let is_another = |found: Option<&kube::api::DynamicObject>| {
        found.is_some_and(|found| found.metadata.uid != first_job.metadata.uid)
    };
    let second_job = toys
        .wait_until(&jobs, "j", "to be recreated", is_another)
        .await;
    let image = "/spec/template/spec/containers/0/image";
    let second_job = second_job.expect("the child exists");
    assert_eq!(second_job.data.pointer(image), Some(&json!("i:2")));
    let same = services.get("s").await.expect("the child exists");
    assert_eq!(
        same.data["spec"]["ports"][0]["port"], 80,
        "an `OnDelete` child changes only after it was deleted"
    );
    let same = secrets.get("p").await.expect("the child exists");
    assert_eq!(
        same.metadata.resource_version,
        first_secret.metadata.resource_version
    );

    services
        .delete("s", &DeleteParams::default())
        .await
        .expect("the API server deletes the child");
    let is_new = |found: Option<&kube::api::DynamicObject>| {
        found.is_some_and(|found| found.data["spec"]["ports"][0]["port"] == 81)
    };
    toys.wait_until(
        &services,
        "s",
        "to be created in its new desired state",
        is_new,
    )
    .await;

    // A child that is desired by name only is not changed, and is not pruned with the others.
    let name_only = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}});
    apply(&[name_only]).await;
    toys.wait_until_deleted(&jobs, "j").await;
    toys.wait_until_deleted(&secrets, "p").await;
    assert!(
        services
            .get_opt("s")
            .await
            .expect("the API server answers")
            .is_some()
    );
    apply(&[]).await;
    toys.wait_until_deleted(&services, "s").await;
}
