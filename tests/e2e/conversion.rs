//! Conversion between the versions of the kind by the webhook.

use lockstep_cloud_database_api::CloudDatabase;
use lockstep_envtest::eventually;
use lockstep_shared_validation::Validator;
use serde_json::{Value, json};

use crate::corpus::corpus;
use crate::env::{TestEnv, database};

const BETA: &str = "clouddatabases.v1beta1.database.example.com";
const ALPHA: &str = "clouddatabases.v1alpha1.database.example.com";
const CRD: &str = "clouddatabases.database.example.com";

fn patch_crd(env: &TestEnv, operations: &Value) {
    let operations = operations.to_string();
    let patch = ["patch", "crd", CRD, "--type=json", "-p", &operations];
    env.kubectl(&patch).expect("the CRD is patched");
}

fn get(env: &TestEnv, resource: &str, name: &str) -> Result<Value, String> {
    let read = env.kubectl(&["get", resource, name, "-o", "json"])?;
    Ok(serde_json::from_str(&read).expect("JSON"))
}

async fn world_with_both_versions() -> TestEnv {
    let env = TestEnv::start().await;
    let hidden = get(&env, BETA, "any").expect_err("the version is not served by default");
    assert!(
        hidden.contains("the server doesn't have a resource type"),
        "{hidden}"
    );
    patch_crd(
        &env,
        &json!([{"op": "replace", "path": "/spec/versions/1/served", "value": true}]),
    );
    eventually("the serving of the version", async || {
        let path = "/apis/database.example.com/v1beta1/namespaces/default/clouddatabases";
        env.kubectl(&["get", "--raw", path]).ok()
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    env
}

/// Database in the other version, v1beta1.
fn beta(name: &str) -> Value {
    let mut object = database(name);
    object["apiVersion"] = json!("database.example.com/v1beta1");
    let spec = object["spec"].as_object_mut().expect("a spec");
    spec.remove("instanceClass");
    spec.insert("class".to_owned(), json!("db.t4g.micro"));
    spec["credentials"] = json!({"username": "app", "secretRef": {"name": "credentials"}});
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_have_the_same_content_and_are_validated_alike() {
    let mut env = world_with_both_versions().await;
    env.kubectl_apply(&database("old")).expect("stored");
    env.kubectl_apply(&beta("new")).expect("stored");
    for name in ["old", "new"] {
        env.condition(name, "Ready", "True").await;
        let (alpha, beta) = (get(&env, ALPHA, name), get(&env, BETA, name));
        let (alpha, beta) = (alpha.expect("v1alpha1"), beta.expect("v1beta1"));
        assert_eq!(alpha["spec"]["instanceClass"], "db.t4g.micro");
        assert_eq!(beta["spec"]["class"], "db.t4g.micro");
        assert_eq!(
            beta["spec"]["credentials"]["secretRef"],
            json!({"name": "credentials", "usernameKey": "username", "passwordKey": "password"})
        );
        assert_eq!(alpha["spec"]["credentials"]["secretName"], "credentials");
        assert_eq!(alpha["status"], beta["status"]);
        let annotations = beta["metadata"]["annotations"].as_object();
        let stored = annotations.into_iter().flatten().map(|(key, _)| key);
        let stored: Vec<_> = stored
            .filter(|key| key.starts_with("conversion."))
            .collect();
        assert!(
            stored.is_empty(),
            "annotations are not needed for this object: {stored:?}"
        );
    }
    let stored = ["get", "crd", CRD, "-o", "jsonpath={.status.storedVersions}"];
    assert_eq!(env.kubectl(&stored).expect("the CRD"), r#"["v1alpha1"]"#);

    let mut invalid = beta("bills");
    invalid["spec"]["credentials"]["username"] = json!("user");
    let rejection = env
        .kubectl_apply(&invalid)
        .expect_err("the object is denied");
    assert!(rejection.contains("[username-reserved]"), "{rejection}");

    // Requests for the stored version need no webhook.
    env.installation.webhook().kill();
    get(&env, ALPHA, "old").expect("the stored version needs no conversion");
    get(&env, BETA, "old").expect_err("the webhook is down");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_version_can_be_the_stored_one() {
    let env = world_with_both_versions().await;
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;
    let before = get(&env, ALPHA, "orders").expect("the object");
    patch_crd(
        &env,
        &json!([
            {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
            {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
        ]),
    );
    let stored = ["get", "crd", CRD, "-o", "jsonpath={.status.storedVersions}"];
    eventually("the change of the stored version", async || {
        let stored = env.kubectl(&stored).ok()?;
        stored.contains("v1beta1").then_some(())
    })
    .await
    .expect("`status.storedVersions` contains v1beta1");
    // The controller keeps using its version, converted by the webhook, on an object stored in the other version.
    env.kubectl(&["label", ALPHA, "orders", "stored=anew"])
        .expect("the object is labelled");
    let mut larger = beta("orders");
    larger["spec"]["storage"]["sizeGib"] = json!(150);
    env.kubectl_apply(&larger)
        .expect("the larger size is admitted");
    env.instance_that("the growth of the storage", |instance| {
        instance.allocated_storage == Some(150)
    })
    .await;
    let mut after = get(&env, ALPHA, "orders").expect("the object");
    assert_eq!(after["spec"]["storage"]["sizeGib"], 150);
    after["spec"]["storage"]["sizeGib"] = json!(100);
    assert_eq!(after["spec"], before["spec"]);
}

#[test]
fn the_versions_are_converted_without_loss() {
    lockstep_test::assert_lossless_conversion::<CloudDatabase>();
}

#[test]
fn every_object_of_the_corpus_survives_a_round_trip() {
    let ruleset = lockstep_cloud_database_api::ruleset().expect("the rules");
    let mut count = 0;
    for case in corpus() {
        let object = &case.object;
        if object["apiVersion"] != "database.example.com/v1alpha1" {
            continue;
        }
        let converted = ruleset.convert(object, "database.example.com/v1beta1");
        let back = ruleset.convert(
            &converted.expect("v1beta1"),
            "database.example.com/v1alpha1",
        );
        assert_eq!(back.expect("v1alpha1"), *object, "{}", case.name);
        count += 1;
    }
    assert!(count > 300, "only {count} objects were converted");
}
