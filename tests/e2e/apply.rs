//! A valid object becomes a database and an invalid one is turned away.

use serde_json::json;

use crate::world::{World, database};

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_object_becomes_ready_and_leaves_nothing_behind() {
    let world = World::start().await;
    world.kubectl_apply(&database("orders")).expect("a valid object is stored");
    world.kubectl(&["wait", "--for=condition=Ready", "cdb/orders", "--timeout=30s"]).unwrap_or_else(|error| panic!("{error}\n{}", world.logs()));
    let stored = world.databases().get("orders").await.expect("stored");
    assert_eq!(stored.data["spec"]["port"], 5432);
    assert_eq!(stored.data["spec"]["credentials"]["selectors"], json!({"username": "username", "password": "password"}));
    let instances = world.instances().await;
    assert_eq!(instances.len(), 1);
    let endpoint = instances[0].endpoint().and_then(|e| e.address()).expect("moto gives an address");
    assert_eq!(stored.data["status"]["endpoint"]["host"], endpoint);
    assert_eq!(stored.data["status"]["accepted"]["values"]["spec.storage.sizeGib"], 100);

    world.kubectl(&["delete", "cdb/orders", "--timeout=30s"]).unwrap_or_else(|error| panic!("{error}\n{}", world.logs()));
    assert_eq!(world.instances().await.len(), 0, "the object went before its instance");
}
