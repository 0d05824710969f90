//! Children of a kind of the same name in the group of another program. They have the same label of the controller.

use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use crate::children::fixture_kind::Toys;

/// Returns a `ConfigMap` whose controller is a `Family` that the cluster does not have.
fn orphan(name: &str, api_version: &str, uid: &str) -> DynamicObject {
    let labels = json!({"lockstep.dev/controller": "family", "lockstep.dev/owner-uid": uid});
    let owner = json!({
        "apiVersion": api_version, "kind": "Family", "name": "gone", "uid": uid, "controller": true,
    });
    let metadata = json!({"name": name, "labels": labels, "ownerReferences": [owner]});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    serde_json::from_value(object).expect("a ConfigMap")
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_not_deleted_as_orphans() {
    let mut toys = Toys::start_without_garbage_collector().await;
    toys.start_controllers().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let params = PostParams::default();
    let others = orphan(
        "others",
        "other.example.com/v1",
        "11111111-0000-0000-0000-000000000000",
    );
    let others = maps.create(&params, &others).await.expect("created");
    let own = orphan(
        "own",
        "toys.example.com/v1",
        "22222222-0000-0000-0000-000000000000",
    );
    maps.create(&params, &own).await.expect("created");
    // Both were there in each scan that the second one has not survived.
    toys.wait_until_deleted(&maps, "own").await;
    let left = maps
        .get("others")
        .await
        .expect("it belongs to another program");
    assert_eq!(left.uid(), others.uid());
    assert_eq!(left.metadata.deletion_timestamp, None);
}
