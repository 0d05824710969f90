//! The webhook configurations are deleted: the controller detects the invalid objects that the API server stores.

use std::time::Duration;

use lockstep_envtest::{eventually, stays};
use serde_json::{Value, json};

use crate::env::{TestEnv, check, database};
use crate::metrics_page;
use crate::proxy::Proxy;

/// Environment without a webhook, and a proxy that records every call to AWS.
async fn environment() -> (TestEnv, Proxy) {
    let (env, proxy) = TestEnv::start_behind_proxy().await;
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    (env, proxy)
}

/// Stores an invalid object, checks that its reconciliation is suspended, fixes it and waits until it is ready.
async fn is_frozen_until_corrected(env: &TestEnv, proxy: &Proxy, invalid: &Value) {
    let expected = check_message(env, invalid);
    env.kubectl_apply(invalid)
        .expect("the object is stored without the webhook");
    let valid = env.condition("orders", "Valid", "False").await;
    assert_eq!(
        valid.message, expected,
        "the controller reports the same message as `lockstep check`"
    );
    assert_eq!(
        env.condition("orders", "Ready", "False").await.reason,
        "Invalid"
    );
    let event = eventually("a Warning Event", async || {
        let events = env
            .kubectl(&[
                "get",
                "events",
                "--field-selector",
                "reason=Invalid,type=Warning",
                "-o",
                "json",
            ])
            .ok()?;
        let events: Value = serde_json::from_str(&events).ok()?;
        events["items"]
            .as_array()?
            .iter()
            .find(|event| event["involvedObject"]["name"] == "orders")
            .cloned()
    });
    let event = event
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(
        expected.starts_with(
            event["message"]
                .as_str()
                .expect("a message")
                .trim_end_matches('…')
        ),
        "{event}"
    );

    // Long enough for the first and shortest back-off to pass twice.
    let url = env.installation.controller_health_url();
    let reconciles = async || reconciles(&env.metrics(&url).await);
    stays(Duration::from_secs(3), "the reconcile count", reconciles).await;
    assert_eq!(
        proxy.calls(),
        Vec::<String>::new(),
        "AWS was called for an invalid object"
    );
    let metrics = env.metrics(&url).await;
    let stalled = r#"lockstep_stalled_objects{controller="clouddatabase",reason="Invalid"} 1"#;
    assert!(metrics.contains(stalled), "{metrics}");
    metrics_page::compare("controller", &metrics);

    env.kubectl_apply(&database("orders"))
        .expect("the correction is stored");
    env.condition("orders", "Valid", "True").await;
    env.condition("orders", "Ready", "True").await;
    assert!(proxy.calls().iter().any(|call| call == "CreateDBInstance"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_violated_rust_rule_suspends_reconciliation_until_the_object_is_fixed() {
    let (env, proxy) = environment().await;
    let mut invalid = database("orders");
    invalid["spec"]["credentials"]["username"] = json!("user");
    invalid["spec"]["backup"] = json!({"window": "03:00-03:10"});
    is_frozen_until_corrected(&env, &proxy, &invalid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_violated_schema_or_cel_rule_suspends_reconciliation_where_the_crd_has_lost_its_schema() {
    let (env, proxy) = environment().await;
    env.empty_crd().await;
    let mut invalid = database("orders");
    invalid["spec"]["port"] = json!(80);
    invalid["spec"]["storage"]["maxSizeGib"] = json!(105);
    is_frozen_until_corrected(&env, &proxy, &invalid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_decoded_does_not_affect_other_objects() {
    let (env, _proxy) = environment().await;
    env.empty_crd().await;
    let mut unreadable = database("unreadable");
    unreadable["spec"] =
        json!({"engine": {"not": "a string"}, "storage": [1, 2], "credentials": "none"});
    unreadable["status"] = json!("no object either");
    env.kubectl_apply(&unreadable).expect("stored");
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;
    let valid = env.condition("unreadable", "Valid", "False").await;
    assert!(valid.message.contains("spec.engine"), "{}", valid.message);
    env.kubectl(&["delete", "cdb/unreadable", "--timeout=30s"])
        .unwrap_or_else(|e| env.fail(&e));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_validates_transitions_and_deletes_an_invalid_object_by_the_safer_policy() {
    let (env, proxy) = environment().await;
    env.empty_crd().await;
    let mut object = database("orders");
    object["spec"]["deletionPolicy"] = json!("Retain");
    env.kubectl_apply(&object).expect("stored");
    env.condition("orders", "Ready", "True").await;

    // Without the webhook: engine, size and deletion policy change, then the object is deleted.
    object["spec"]["engine"] = json!("mysql");
    object["spec"]["storage"]["sizeGib"] = json!(50);
    object["spec"]["deletionPolicy"] = json!("Delete");
    env.kubectl_apply(&object).expect("stored");
    let valid = env.condition("orders", "Valid", "False").await;
    for part in [
        "spec.engine: Invalid value: \"mysql\": is immutable",
        "spec.storage.sizeGib: Invalid value: 50: must not be decreased",
    ] {
        assert!(
            valid.message.contains(part),
            "`{part}` is not in: {}",
            valid.message
        );
    }
    assert!(
        !proxy.calls().iter().any(|call| call == "ModifyDBInstance"),
        "{:?}",
        proxy.calls()
    );
    env.kubectl(&["delete", "cdb/orders", "--timeout=30s"])
        .unwrap_or_else(|e| env.fail(&e));
    assert_eq!(
        env.instances().await.len(),
        1,
        "the last validated deletion policy was Retain"
    );
}

/// The errors that `lockstep check` reports for an object, as one message.
fn check_message(env: &TestEnv, object: &Value) -> String {
    let path = env.cluster.directory().join("object.json");
    std::fs::write(&path, object.to_string()).expect("a file");
    let result = check(&[], &path);
    let messages: Vec<_> = result["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|e| e["message"].as_str().expect("text"))
        .collect();
    match messages.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn reconciles(metrics: &str) -> Vec<String> {
    let counts = metrics
        .lines()
        .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
    let counts: Vec<_> = counts.map(String::from).collect();
    assert!(
        !counts.is_empty(),
        "no reconciliation is counted: {metrics}"
    );
    counts
}
