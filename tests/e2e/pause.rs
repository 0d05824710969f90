//! An annotation pauses the reconciliation of an object.

use jiff::Timestamp;
use lockstep_envtest::eventually;
use serde_json::json;

use crate::env::{TestEnv, condition, database};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_is_not_reconciled_until_it_is_resumed() {
    let (env, proxy) = TestEnv::start_behind_proxy().await;
    let pause = |value: &str| {
        let annotation = format!("lockstep.dev/paused={value}");
        let annotated = env.kubectl(&["annotate", "--overwrite", "cdb/orders", &annotation]);
        annotated.unwrap_or_else(|e| env.fail(&e));
    };
    let mut orders = database("orders");
    orders["metadata"]["annotations"] = json!({"lockstep.dev/paused": "true"});
    env.kubectl_apply(&orders).expect("stored");
    env.condition("orders", "Paused", "True").await;
    let stored = env.databases().get("orders").await.expect("an object");
    assert_eq!(stored.metadata.finalizers, None);
    assert_eq!(proxy.calls(), Vec::<String>::new(), "AWS was called");

    pause("false");
    env.condition("orders", "Ready", "True").await;
    let stored = env.databases().get("orders").await.expect("an object");
    assert!(condition(&stored, "Paused").is_none());

    pause("true");
    let since = env.condition("orders", "Paused", "True").await;
    let since = since.last_transition_time.0;
    let later = eventually("the next second", async || {
        (Timestamp::now().as_second() > since.as_second() + 1).then_some(())
    });
    later.await.expect("time passes");
    let calls = proxy.calls().len();
    orders["spec"]["storage"]["sizeGib"] = json!(120);
    env.kubectl_apply(&orders).expect("stored");
    env.condition("orders", "Paused", "True").await;
    env.kubectl(&["delete", "cdb/orders", "--wait=false"])
        .expect("deletion begins");
    // The condition has the generation that the deletion creates.
    let paused = env.condition("orders", "Paused", "True").await;
    assert_eq!(
        paused.last_transition_time.0, since,
        "the transition time has changed"
    );
    assert_eq!(env.instances().await.len(), 1);
    assert_eq!(proxy.calls().len(), calls, "{:?}", proxy.calls());

    pause("false");
    let gone = eventually("the deletion of the object", async || {
        (!env.has_database("orders").await).then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(env.instances().await.len(), 0);
}
