//! An instance that no longer exists, and an instance of an earlier object with the same name: neither is replaced by
//! an empty instance without the author's consent.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject};
use lockstep_envtest::stays;
use serde_json::{Value, json};

use crate::env::{TestEnv, condition, database};
use crate::proxy::Proxy;

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden change.
const WHILE: Duration = Duration::from_secs(2);

const REPLACES: &str = "database.example.com/replaces-instance";

fn with_policy(name: &str, policy: &str) -> Value {
    let mut object = database(name);
    object["spec"]["deletionPolicy"] = json!(policy);
    object
}

/// Creates an object, waits until it is ready, and deletes its instance directly in RDS.
async fn vanished(policy: &str) -> (TestEnv, Proxy, DynamicObject) {
    let (env, proxy) = TestEnv::start_behind_proxy().await;
    env.kubectl_apply(&with_policy("orders", policy))
        .expect("stored");
    env.condition("orders", "Ready", "True").await;
    let object = env.databases().get("orders").await.expect("an object");
    delete_by_hand(&env, &object).await;
    (env, proxy, object)
}

async fn delete_by_hand(env: &TestEnv, object: &DynamicObject) {
    let id = object.data["status"]["instanceId"].as_str();
    let call = env.rds.delete_db_instance().skip_final_snapshot(true);
    let call = call.set_db_instance_identifier(id.map(String::from)).send();
    call.await.expect("moto deletes the instance");
}

fn creations(proxy: &Proxy) -> usize {
    let calls = proxy.calls();
    let creations = calls.iter().filter(|call| *call == "CreateDBInstance");
    creations.count()
}

fn annotate(env: &TestEnv, value: &str) {
    let annotation = format!("{REPLACES}={value}");
    env.kubectl(&["annotate", "--overwrite", "cdb/orders", &annotation])
        .unwrap_or_else(|error| env.fail(&error));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_instance_is_reported_and_replaced_only_with_the_annotation() {
    let (env, proxy, object) = vanished("Delete").await;
    let resource_id = object.data["status"]["resourceId"].as_str();
    let resource_id = resource_id.expect("a recorded resource ID");
    let ready = env
        .condition_because("orders", "Ready", "InstanceMissing")
        .await;
    assert_eq!(ready.status, "False");
    let annotation = format!("{REPLACES}={resource_id}");
    assert!(ready.message.contains(&annotation), "{}", ready.message);
    env.condition_because("orders", "Stalled", "InstanceMissing")
        .await;
    env.warned("orders", "InstanceMissing").await;

    annotate(&env, "another");
    stays(WHILE, "creations", async || creations(&proxy)).await;
    assert_eq!(creations(&proxy), 1, "only the first instance was created");
    assert_eq!(env.instances().await.len(), 0);

    annotate(&env, resource_id);
    let ready = env.condition("orders", "Ready", "True").await;
    assert!(!ready.message.contains(REPLACES), "{}", ready.message);
    assert_eq!(env.instances().await.len(), 1);
    assert_eq!(creations(&proxy), 2);

    // The annotation has no further effect: it does not name the new instance.
    let object = env.databases().get("orders").await.expect("an object");
    assert_ne!(object.data["status"]["resourceId"], resource_id);
    delete_by_hand(&env, &object).await;
    env.condition_because("orders", "Ready", "InstanceMissing")
        .await;
    stays(WHILE, "creations", async || creations(&proxy)).await;
    assert_eq!(creations(&proxy), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_instance_is_neither_missing_nor_replaced() {
    let env = TestEnv::start_on_moto().await;
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;
    let object = env.databases().get("orders").await.expect("an object");
    let id = object.data["status"]["instanceId"].as_str();
    let id = id.expect("an identifier");
    let rename = async |from: &str, to: &str| {
        let call = env.rds.modify_db_instance().apply_immediately(true);
        let call = call.db_instance_identifier(from);
        let call = call.new_db_instance_identifier(to);
        call.send().await.expect("moto renames the instance");
    };
    rename(id, "orders-old").await;
    let ready = env
        .condition_because("orders", "Ready", "InstanceRenamed")
        .await;
    assert!(ready.message.contains("orders-old"), "{}", ready.message);
    let resource_id = object.data["status"]["resourceId"].as_str();
    annotate(&env, resource_id.expect("a recorded resource ID"));
    stays(WHILE, "instances", async || env.instances().await.len()).await;
    assert_eq!(env.instances().await.len(), 1);

    rename("orders-old", id).await;
    let ready = env.condition("orders", "Ready", "True").await;
    assert!(ready.message.contains(REPLACES), "{}", ready.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_controller_does_not_replace_an_instance_that_was_deleted_meanwhile() {
    let mut env = TestEnv::start_on_moto().await;
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;
    env.installation.controller().kill();
    let object = env.databases().get("orders").await.expect("an object");
    delete_by_hand(&env, &object).await;
    env.installation.start_controller().expect("a controller");
    env.condition_because("orders", "Ready", "InstanceMissing")
        .await;
    assert_eq!(env.instances().await.len(), 0);
}

/// Asserts that the finalizer of an object stays if its instance was deleted without a final snapshot, until the
/// policy is set to `Retain`.
async fn is_kept_while_it_is_deleted(policy: &str) {
    let (env, _proxy, _) = vanished(policy).await;
    env.databases()
        .delete("orders", &DeleteParams::default())
        .await
        .expect("deletion begins");
    let stalled = env
        .condition_because("orders", "Stalled", "InstanceMissing")
        .await;
    assert!(stalled.message.contains("Retain"), "{}", stalled.message);
    stays(WHILE, "the object", async || {
        env.has_database("orders").await
    })
    .await;
    let patch = json!({"spec": {"deletionPolicy": "Retain"}}).to_string();
    env.kubectl(&["patch", "cdb/orders", "--type=merge", "--patch", &patch])
        .unwrap_or_else(|error| env.fail(&error));
    env.gone("orders").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_with_policy_snapshot_does_not_count_a_missing_instance_as_deleted() {
    Box::pin(is_kept_while_it_is_deleted("Snapshot")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_with_policy_delete_does_not_count_a_missing_instance_as_deleted() {
    Box::pin(is_kept_while_it_is_deleted("Delete")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_snapshot_is_not_used_as_the_final_snapshot() {
    let env = TestEnv::start_on_moto().await;
    env.kubectl_apply(&with_policy("orders", "Snapshot"))
        .expect("stored");
    env.condition("orders", "Ready", "True").await;
    let object = env.databases().get("orders").await.expect("an object");
    let id = object.data["status"]["instanceId"].as_str();
    let id = id.expect("an identifier");
    let call = env.rds.create_db_snapshot().db_instance_identifier(id);
    let call = call.db_snapshot_identifier(format!("{id}-final")).send();
    call.await.expect("moto creates the snapshot");
    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    assert_eq!(env.instances().await.len(), 0);
    let snapshots = env.rds.describe_db_snapshots().send().await;
    let snapshots = snapshots.expect("moto answers").db_snapshots;
    assert_eq!(snapshots.unwrap_or_default().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_object_gets_no_second_instance_without_the_annotation() {
    let (env, proxy) = TestEnv::start_behind_proxy().await;
    let backup = with_policy("orders", "Retain");
    env.kubectl_apply(&backup).expect("stored");
    env.condition("orders", "Ready", "True").await;
    let first = env.databases().get("orders").await.expect("an object");
    let identifier = first.data["status"]["instanceId"].as_str();
    let identifier = identifier.expect("an identifier");
    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));

    env.kubectl_apply(&backup).expect("stored again");
    let ready = env
        .condition_because("orders", "Ready", "InstanceOfEarlierObject")
        .await;
    let again = env.databases().get("orders").await.expect("an object");
    assert_ne!(again.uid(), first.uid());
    assert!(ready.message.contains(identifier), "{}", ready.message);
    let stalled = condition(&again, "Stalled").map(|stalled| stalled.status);
    assert_eq!(stalled.as_deref(), Some("True"));
    env.warned("orders", identifier).await;
    stays(WHILE, "creations", async || creations(&proxy)).await;
    assert_eq!(creations(&proxy), 1, "only the first instance was created");

    // Another object of that namespace is not blocked.
    env.kubectl_apply(&database("billing")).expect("stored");
    env.condition("billing", "Ready", "True").await;

    let resource_id = first.data["status"]["resourceId"].as_str();
    annotate(&env, resource_id.expect("a recorded resource ID"));
    env.condition("orders", "Ready", "True").await;
    assert_eq!(env.instances().await.len(), 3);
}
