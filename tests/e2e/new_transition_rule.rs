//! Upgrade to a release with a new transition rule: the status of stored objects has no last validated value of the
//! field that the rule compares.

use serde_json::{Value, json};

use crate::env::{TestEnv, database};

/// Replaces the status that the controller has written by that of a release in which `field` was no transition field.
fn forget(env: &TestEnv, name: &str, field: &str) {
    let path = format!("/status/lastValidated/values/{field}");
    let operations = json!([{"op": "remove", "path": path}]).to_string();
    env.kubectl(&[
        "patch",
        "cdb",
        name,
        "--subresource=status",
        "--type=json",
        "-p",
        &operations,
    ])
    .unwrap_or_else(|e| env.fail(&e));
}

/// Database with a field whose rule is violated if the field has a value and its last validated value counts as absent.
fn named_database(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["databaseName"] = json!("shop");
    object
}

async fn values(env: &TestEnv, name: &str) -> Value {
    let stored = env.databases().get(name).await.expect("the object");
    stored.data["status"]["lastValidated"]["values"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_transition_rule_suspends_no_stored_object_and_applies_to_its_next_change() {
    let mut env = TestEnv::start().await;
    for name in ["orders", "customers"] {
        env.kubectl_apply(&named_database(name))
            .unwrap_or_else(|e| env.fail(&e));
        env.condition(name, "Ready", "True").await;
        let validated = values(&env, name).await;
        assert_eq!(validated["spec.databaseName"], "shop", "{validated}");
        assert_eq!(
            validated["spec.encryption.kmsKey"],
            json!({}),
            "{validated}"
        );
    }
    env.installation.controller().kill();
    forget(&env, "orders", "spec.databaseName");
    forget(&env, "customers", "spec.databaseName");
    // An edit while no controller runs, through the webhook, which has no last validated value of the field either.
    let mut edited = named_database("customers");
    edited["spec"]["tags"] = json!({"team": "shop"});
    env.kubectl_apply(&edited).unwrap_or_else(|e| env.fail(&e));

    env.installation
        .start_controller()
        .expect("the controller starts");
    for name in ["orders", "customers"] {
        let recorded = r"--for=jsonpath={.status.lastValidated.values.spec\.databaseName}=shop";
        env.kubectl(&["wait", &format!("cdb/{name}"), recorded, "--timeout=60s"])
            .unwrap_or_else(|e| env.fail(&e));
        env.condition(name, "Valid", "True").await;
        env.condition(name, "Ready", "True").await;
    }

    // From here on the value is known. Neither the API server nor the webhook denies the changes.
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    env.empty_crd().await;
    edited["spec"]["databaseName"] = json!("store");
    edited["spec"]["encryption"] = json!({"enabled": true, "kmsKey": "alias/databases"});
    env.kubectl_apply(&edited).unwrap_or_else(|e| env.fail(&e));
    let invalid = env.condition("customers", "Valid", "False").await.message;
    for field in ["spec.databaseName", "spec.encryption.kmsKey"] {
        assert!(invalid.contains(field), "{invalid}");
    }
}
