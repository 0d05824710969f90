//! An object that is left alone for a while.

use control_plane::eventually;
use jiff::Timestamp;
use serde_json::json;

use crate::world::{World, condition, database};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_is_left_alone_and_taken_up_again() {
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
    assert_eq!(proxy.calls(), Vec::<String>::new(), "AWS was asked");

    pause("false");
    world.condition("orders", "Ready", "True").await;
    let stored = world.databases().get("orders").await.expect("an object");
    assert!(condition(&stored, "Paused").is_none());

    pause("true");
    let since = world.condition("orders", "Paused", "True").await;
    let since = since.last_transition_time.0;
    let later = eventually("another second", async || {
        (Timestamp::now().as_second() > since.as_second() + 1).then_some(())
    });
    later.await.expect("time goes by");
    let calls = proxy.calls().len();
    orders["spec"]["storage"]["sizeGib"] = json!(120);
    world.kubectl_apply(&orders).expect("stored");
    world.condition("orders", "Paused", "True").await;
    world
        .kubectl(&["delete", "cdb/orders", "--wait=false"])
        .expect("deletion begins");
    // The condition tells of the generation that a deletion makes.
    let paused = world.condition("orders", "Paused", "True").await;
    assert_eq!(paused.last_transition_time.0, since, "it has not moved");
    assert_eq!(world.instances().await.len(), 1);
    assert_eq!(proxy.calls().len(), calls, "{:?}", proxy.calls());

    pause("false");
    let gone = eventually("the object being gone", async || {
        (!world.has_database("orders").await).then_some(())
    });
    gone.await
        .unwrap_or_else(|error| world.fail(&error.to_string()));
    assert_eq!(world.instances().await.len(), 0);
}
