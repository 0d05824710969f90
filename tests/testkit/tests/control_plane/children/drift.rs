//! Differences between a child and its desired state: which ones are corrected.

use kube::api::DynamicObject;
use lockstep_test::When;
use serde_json::{Value, json};

use crate::children::fixture_kind::Toys;

fn deployment(containers: &Value) -> Value {
    let labels = json!({"app": "d"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,
            "paused": false,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    })
}

fn main_container(image: &str) -> Value {
    json!({
        "name": "main", "image": image, "args": ["a", "b"], "env": [],
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
        "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
    })
}

/// Returns true if kube-controller-manager has written the last status of a Deployment.
fn is_rolled_out(found: Option<&DynamicObject>) -> bool {
    let Some(found) = found else { return false };
    let status = &found.data["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut reasons = conditions.map(|condition| &condition["reason"]);
    json!(found.metadata.generation) == status["observedGeneration"]
        && reasons.any(|reason| reason == "NewReplicaSetAvailable")
}

/// JSON pointer to the containers of a Deployment.
const CONTAINERS: &str = "/spec/template/spec/containers";

#[tokio::test(flavor = "multi_thread")]
async fn only_the_desired_fields_of_a_child_are_managed() {
    let mut toys = Toys::start().await;
    let deployments = toys.of("Deployment", Some("default"));
    toys.family("a", &[deployment(&json!([main_container("i:1")]))])
        .await;
    let verbs = |toys: &Toys| -> Vec<_> { toys.writes().iter().map(|call| call.verb).collect() };
    assert_eq!(verbs(&toys), ["create"]);

    // The API server stores equal values in another notation; another process finds no difference.
    let stored = deployments.get("d").await.expect("the child exists");
    let container = &stored
        .data
        .pointer(CONTAINERS)
        .expect("the Deployment has containers")[0];
    assert_eq!(
        container["resources"]["requests"],
        json!({"cpu": "1", "memory": "1Gi"})
    );
    assert_eq!(container.get("env"), None);
    toys.start_controllers().await;
    toys.family("b", &[]).await;
    assert_eq!(verbs(&toys), Vec::<&str>::new());

    // Other clients add fields and list items.
    let sidecar = json!({"name": "sidecar", "image": "s"});
    let both = json!([container, sidecar]);
    let more = json!({"metadata": {"labels": {"team": "blue"}}, "spec": {
        "minReadySeconds": 7, "template": {"spec": {"containers": both}},
    }});
    toys.change_as_other_client(&deployments, "d", &more).await;
    // Until then, each status write of Kubernetes' own controller moves the entries of `managedFields`, and a patch that
    // addresses one of them by its index is sent again.
    toys.wait_until(&deployments, "d", "to be rolled out", is_rolled_out)
        .await;
    toys.family("a", &[deployment(&json!([main_container("i:2")]))])
        .await;
    let stored = deployments.get("d").await.expect("the child exists");
    let containers = stored
        .data
        .pointer(CONTAINERS)
        .expect("the Deployment has containers");
    assert_eq!(
        (&containers[0]["image"], &containers[1]["image"]),
        (&json!("i:2"), &json!("s"))
    );
    assert_eq!(stored.data["spec"]["minReadySeconds"], 7);
    // The first change after the creation first records the created fields as applied.
    assert_eq!(verbs(&toys), ["patch", "patch"]);

    // Another client changes a managed field, and the controller reverts it.
    let of_other_client = json!({"spec": {"replicas": 3}});
    toys.change_as_other_client(&deployments, "d", &of_other_client)
        .await;
    let replicas = |found: Option<&DynamicObject>| {
        found.is_some_and(|found| found.data["spec"]["replicas"] == 0)
    };
    toys.wait_until(&deployments, "d", "to be reverted", replicas)
        .await;
    assert_eq!(verbs(&toys), ["patch"]);

    // Fields that are no longer desired are removed, and no others.
    let mut less = main_container("i:2");
    less["ports"] = json!([{"containerPort": 80}]);
    less.as_object_mut()
        .expect("the container is a JSON object")
        .remove("args");
    toys.family("a", &[deployment(&json!([less]))]).await;
    let stored = deployments.get("d").await.expect("the child exists");
    let containers = stored
        .data
        .pointer(CONTAINERS)
        .expect("the Deployment has containers");
    assert_eq!(containers[0].get("args"), None);
    assert_eq!(containers[0]["ports"].as_array().map(Vec::len), Some(1));
    assert_eq!(containers[1]["image"], "s");
    assert_eq!(
        stored.metadata.labels.expect("the Deployment has labels")["team"],
        "blue"
    );
    assert_eq!(verbs(&toys), ["patch"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_writes_are_repeated_and_completed_ones_are_not() {
    let toys = Toys::start().await;
    let child = |name: &str, value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"value": value},
        })
    };
    for when in [When::Before, When::After] {
        for (verb, value) in [("create", "1"), ("patch", "2"), ("delete", "")] {
            let name = format!("{when:?}-{verb}").to_lowercase();
            let maps = toys.of("ConfigMap", Some("default"));
            if verb != "create" {
                toys.family(&name, &[child(&name, "1")]).await;
            }
            toys.writes();
            toys.calls.fail(verb, "configmaps", 1, when);
            let children = if verb == "delete" {
                vec![]
            } else {
                vec![child(&name, value)]
            };
            toys.family(&name, &children).await;
            if verb == "delete" {
                toys.wait_until_deleted(&maps, &name).await;
            } else {
                let created = maps.get(&name).await.expect("the child exists");
                assert_eq!(created.data["data"]["value"], value, "{name}");
            }
            assert!(toys.calls.have_failed(), "{name}");
            let verbs: Vec<_> = toys.writes().iter().map(|call| call.verb).collect();
            let (tried, done) = (verbs.len(), if verb == "patch" { 2 } else { 1 });
            // The write is retried; a write that was completed without a response is detected.
            assert!((done..=done + 2).contains(&tried), "{name}: {verbs:?}");
        }
    }
}
