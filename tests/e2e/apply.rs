//! A valid object gets a database, and an invalid one is denied.

use aws_sdk_rds::types::DbInstance;
use kube::api::{Api, PostParams};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{TestEnv, database_without_warning};
use crate::webhook::WebhookClient;

#[tokio::test(flavor = "multi_thread")]
async fn a_valid_object_becomes_ready_and_leaves_nothing_behind() {
    let env = TestEnv::start().await;
    env.kubectl_apply(&database_without_warning("orders"))
        .expect("the valid object is stored");
    env.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "cdb/orders",
        "--timeout=60s",
    ])
    .unwrap_or_else(|e| env.fail(&e));
    let stored = env.databases().get("orders").await.expect("stored");
    assert_eq!(stored.data["spec"]["port"], 5432);
    assert_eq!(
        stored.data["spec"]["credentials"]["selectors"],
        json!({"username": "username", "password": "password"})
    );
    let instances = env.instances().await;
    assert_eq!(instances.len(), 1);
    let endpoint = instances[0]
        .endpoint()
        .and_then(|e| e.address())
        .expect("moto returns an address");
    assert_eq!(stored.data["status"]["endpoint"]["host"], endpoint);
    assert_eq!(
        stored.data["status"]["lastValidated"]["values"]["spec.storage.sizeGib"],
        100
    );
    assert_eq!(
        stored.data["status"]["observedGeneration"],
        json!(stored.metadata.generation)
    );

    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|e| env.fail(&e));
    assert_eq!(
        env.instances().await.len(),
        0,
        "the object was removed before its instance"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_object_is_denied_with_every_invalid_field() {
    let env = TestEnv::start().await;
    let webhook = WebhookClient::of(&env).await;

    // Errors that only the webhook reports.
    let mut object = database_without_warning("orders");
    object["spec"]["credentials"]["username"] = json!("user");
    object["spec"]["backup"] = json!({"window": "03:00-03:10"});
    object["spec"]["maintenanceWindow"] = json!("mon:03:05-mon:04:00");
    let message = env
        .kubectl_apply(&object)
        .expect_err("the webhook denies the object");
    for part in [
        r#"spec.credentials.username: Invalid value: "user": is reserved by postgres"#,
        r#"spec.backup.window: Invalid value: "03:00-03:10": must last at least 30 minutes [backup-window-length]"#,
        r#"spec.maintenanceWindow: Invalid value: "mon:03:05-mon:04:00": must not overlap the backup window"#,
    ] {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    let direct = webhook.review("/validate", &object, None).await;
    assert_eq!(direct["allowed"], false);
    assert_eq!(direct["status"]["code"], 422);
    assert_eq!(direct["status"]["reason"], "Invalid");
    let rejection = rejection(&env, &object).await;
    let denied = r#"admission webhook "validate.lockstep.dev" denied the request: CloudDatabase.database.example.com "orders" is invalid: ["#;
    assert!(
        rejection["message"]
            .as_str()
            .is_some_and(|message| message.starts_with(denied)),
        "{rejection}"
    );
    assert_eq!(
        rejection["details"]["causes"],
        direct["status"]["details"]["causes"]
    );
    assert_eq!(
        direct["auditAnnotations"]["rules"],
        "backup-window-length,overlapping-windows,username-reserved"
    );

    // Errors of the API server itself, all in one response.
    let mut object = database_without_warning("orders");
    object["spec"]["port"] = json!(80);
    object["spec"]["storage"]["maxSizeGib"] = json!(105);
    let message = env
        .kubectl_apply(&object)
        .expect_err("the API server denies the object");
    for part in [
        "spec.port: Invalid value: 80",
        "spec.storage.maxSizeGib: Invalid value: must be at least 10 % above",
    ] {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert!(
        !env.has_database("orders").await,
        "an invalid object was stored"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_grown_in_place_and_drift_is_corrected() {
    let env = TestEnv::start().await;
    env.kubectl_apply(&database_without_warning("orders"))
        .expect("stored");
    env.condition("orders", "Ready", "True").await;
    let mut grown = database_without_warning("orders");
    grown["spec"]["storage"]["sizeGib"] = json!(200);
    env.kubectl_apply(&grown)
        .expect("the larger size is admitted");
    let reported = eventually("the report of the larger size", async || {
        let object = env.databases().get("orders").await.ok()?;
        (object.data["status"]["allocatedStorageGib"] == 200).then_some(())
    });
    reported
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));

    let mut shrunk = database_without_warning("orders");
    shrunk["spec"]["storage"]["sizeGib"] = json!(150);
    let message = env
        .kubectl_apply(&shrunk)
        .expect_err("the smaller size is denied");
    assert!(
        message.contains("must not be decreased: RDS cannot shrink storage"),
        "{message}"
    );

    let id = env.instances().await[0]
        .db_instance_identifier()
        .expect("an identifier")
        .to_owned();
    let by_hand = env
        .rds
        .modify_db_instance()
        .db_instance_identifier(&id)
        .db_instance_class("db.m5.large");
    by_hand
        .apply_immediately(true)
        .send()
        .await
        .expect("moto modifies the instance");
    env.instance_that("the correction of the instance class", |instance| {
        instance.db_instance_class() == Some("db.t4g.micro")
    })
    .await;

    grown["spec"]["tags"] = json!({"team": "shop"});
    env.kubectl_apply(&grown).expect("the tag is admitted");
    let tagged = |i: &DbInstance| {
        i.tag_list()
            .iter()
            .any(|t| (t.key(), t.value()) == (Some("team"), Some("shop")))
    };
    env.instance_that("the new tag", tagged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_name_from_the_secret_is_validated_by_the_same_rule() {
    let env = TestEnv::start().await;
    env.make_secret(
        "reserved",
        &json!({"username": "pg_admin", "password": "correct-horse"}),
    )
    .await;
    let mut object = database_without_warning("orders");
    object["spec"]["credentials"] = json!({"secretName": "reserved"});
    env.kubectl_apply(&object)
        .expect("neither webhook nor API server reads the Secret");
    let valid = env.condition("orders", "Valid", "False").await;
    assert!(
        valid
            .message
            .contains("spec.credentials.selectors.username: Invalid value: "),
        "{}",
        valid.message
    );
    assert!(
        valid.message.ends_with("[username-reserved]"),
        "{}",
        valid.message
    );
    assert!(
        !valid.message.contains("pg_admin"),
        "a value of the Secret was printed: {}",
        valid.message
    );
    assert_eq!(env.instances().await.len(), 0);

    // The Secret is fixed: reconciliation resumes without a change of the object.
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(env.cluster.client(), "default");
    let mut secret = secrets.get("reserved").await.expect("the Secret");
    secret.string_data = Some([("username".to_owned(), "app".to_owned())].into());
    secrets
        .replace("reserved", &PostParams::default(), &secret)
        .await
        .expect("replaced");
    env.condition("orders", "Ready", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_sets_the_defaults_that_depend_on_other_fields() {
    let mut env = TestEnv::start().await;
    // Without the controller, only the webhook can set them.
    env.installation.controller().kill();
    let mut object = database_without_warning("orders");
    object["spec"]["engine"] = json!("mysql");
    object["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("engineVersion");
    let object = serde_json::from_value(object).expect("an object");
    let stored = env
        .databases()
        .create(&PostParams::default(), &object)
        .await
        .expect("stored");
    assert_eq!(stored.data["spec"]["port"], 3306);
    assert_eq!(stored.data["spec"]["engineVersion"], "8.4");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_policy_creates_a_snapshot_and_deletion_protection_blocks_until_it_is_disabled()
{
    let env = TestEnv::start().await;
    let mut object = database_without_warning("orders");
    object["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("deletionPolicy");
    object["spec"]["deletionProtection"] = json!(true);
    env.kubectl_apply(&object).expect("stored");
    env.condition("orders", "Ready", "True").await;
    env.kubectl(&["delete", "cdb/orders", "--wait=false"])
        .expect("deletion begins");
    let ready = env.condition("orders", "Ready", "False").await;
    assert_eq!(ready.reason, "DeletionProtected", "{}", ready.message);
    assert_eq!(env.instances().await.len(), 1);

    let lift = r#"{"spec": {"deletionProtection": false}}"#;
    env.kubectl(&["patch", "cdb/orders", "--type=merge", "--patch", lift])
        .expect("the webhook admits the change");
    env.kubectl(&["wait", "--for=delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|e| env.fail(&e));
    assert_eq!(env.instances().await.len(), 0);
    let snapshots = env
        .rds
        .describe_db_snapshots()
        .send()
        .await
        .expect("moto answers")
        .db_snapshots
        .unwrap_or_default();
    assert!(
        snapshots.iter().any(|s| s
            .db_snapshot_identifier()
            .is_some_and(|id| id.ends_with("-final"))),
        "{snapshots:?}"
    );
}

/// Status with which the API server denies an object.
async fn rejection(env: &TestEnv, object: &Value) -> Value {
    let object = serde_json::from_value(object.clone()).expect("an object");
    match env
        .databases()
        .create(&PostParams::default(), &object)
        .await
    {
        Err(kube::Error::Api(status)) => json!(status),
        other => panic!("the object was not denied: {other:?}"),
    }
}
