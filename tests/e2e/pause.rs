//! An annotation pauses the reconciliation of an object.

use control_plane::eventually;
use jiff::Timestamp;
use serde_json::json;

use crate::world::{World, condition, database};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_is_not_reconciled_until_it_is_resumed() {
    let (world, proxy) = World::start_behind_proxy().await;
    let pause = |value: &str| {
        let annotation = format!("lockstep.dev/paused={value}");
        let annotated = world.kubectl(&["annotate", "--overwrite", "cdb/orders", &annotation]);
        annotated.unwrap_or_else(|e| world.fail(&e));
    };
    let mut orders = database("orders");
    orders["metadata"]["annotations"] = json!({"lockstep.dev/paused": "true"});
    world.kubectl_apply(&orders).expect("stored");
    world.condition("orders", "Paused", "True").await;
    let stored = world.databases().get("orders").await.expect("an object");
    assert_eq!(stored.metadata.finalizers, None);
    assert_eq!(proxy.calls(), Vec::<String>::new(), "AWS was called");

    pause("false");
    world.condition("orders", "Ready", "True").await;
    let stored = world.databases().get("orders").await.expect("an object");
    assert!(condition(&stored, "Paused").is_none());

    pause("true");
    let since = world.condition("orders", "Paused", "True").await;
    let since = since.last_transition_time.0;
    let later = eventually("the next second", async || {
        (Timestamp::now().as_second() > since.as_second() + 1).then_some(())
    });
    later.await.expect("time passes");
    let calls = proxy.calls().len();
    orders["spec"]["storage"]["sizeGib"] = json!(120);
    world.kubectl_apply(&orders).expect("stored");
    world.condition("orders", "Paused", "True").await;
    world
        .kubectl(&["delete", "cdb/orders", "--wait=false"])
        .expect("deletion begins");
    // The condition has the generation that the deletion creates.
    let paused = world.condition("orders", "Paused", "True").await;
    assert_eq!(
        paused.last_transition_time.0, since,
        "the transition time has changed"
    );
    assert_eq!(world.instances().await.len(), 1);
    assert_eq!(proxy.calls().len(), calls, "{:?}", proxy.calls());

    pause("false");
    let gone = eventually("the deletion of the object", async || {
        (!world.has_database("orders").await).then_some(())
    });
    gone.await
        .unwrap_or_else(|error| world.fail(&error.to_string()));
    assert_eq!(world.instances().await.len(), 0);
}
