//! Restores of deleted instances, whose automated backups are retained.

use std::time::Duration;

use aws_sdk_rds::types::{DbInstanceAutomatedBackup, Tag};
use rds_simulator::Disturbance;
use serde_json::{Value, json};

use crate::aws::recent::tests::config_at;
use crate::origin::source_policy::UnownedSources;
use crate::tests::environment::{Environment, Told};
use crate::tests::sources::create;

/// Object whose automated backups outlive its instance.
fn retaining(copies_tags: bool) -> Value {
    json!({
        "deletionPolicy": "Delete",
        "retainAutomatedBackups": true,
        "backup": {"copyTagsToSnapshot": copies_tags},
    })
}

/// Creates an object of the namespace `shop`, deletes it with its instance, and returns the resource ID of that.
async fn deleted(env: &Environment, name: &str, fields: &Value) -> String {
    let id = env.create(name, fields).await;
    let instance = env.rds.instance(&id).expect("the instance");
    for _ in 0..5 {
        env.finalize(name).await;
        env.rds.advance(Duration::from_hours(1));
    }
    assert!(env.rds.instance(&id).is_none(), "{id} is deleted");
    env.rds.clear_journal();
    let resource_id = instance["DbiResourceId"].as_str();
    resource_id.expect("a resource ID").to_owned()
}

/// Deletes the instance of an object in another namespace as the controller does, and returns its resource ID.
async fn deleted_elsewhere(env: &Environment, id: &str, tags: &[(&str, &str)]) -> String {
    create(&env.rds, id, tags, false);
    env.rds.advance(Duration::from_hours(1));
    let instance = env.rds.instance(id).expect("the instance");
    let client = aws_sdk_rds::Client::new(&config_at(&env.rds.endpoint()).await);
    let call = client.delete_db_instance().db_instance_identifier(id);
    let call = call
        .skip_final_snapshot(true)
        .delete_automated_backups(false);
    call.send().await.expect("the deletion");
    env.rds.advance(Duration::from_hours(1));
    env.rds.clear_journal();
    let resource_id = instance["DbiResourceId"].as_str();
    resource_id.expect("a resource ID").to_owned()
}

/// Adds a tag with the name of an object to automated backups.
async fn tag_backups(env: &Environment, resource_id: &str, object: &str) {
    let client = aws_sdk_rds::Client::new(&config_at(&env.rds.endpoint()).await);
    let call = client.describe_db_instance_automated_backups();
    let page = call.dbi_resource_id(resource_id).send().await;
    let backups = page.expect("a page").db_instance_automated_backups;
    let [backups]: [DbInstanceAutomatedBackup; 1] = backups
        .expect("automated backups")
        .try_into()
        .expect("automated backups of one instance");
    let arn = backups.db_instance_automated_backups_arn();
    let tag = Tag::builder().key("database.example.com/object");
    let call = client
        .add_tags_to_resource()
        .set_resource_name(arn.map(String::from));
    let call = call.tags(tag.value(object).build()).send();
    call.await.expect("a tag");
}

/// Lets an object of the namespace `shop` restore a deleted instance. Returns the error, or `None` if the restore was requested.
async fn restore(env: &Environment, name: &str, resource_id: &str) -> Option<Told> {
    let source = json!({"sourceResourceId": resource_id, "latest": true});
    env.store(name, &json!({"restoreFrom": {"pointInTime": source}}));
    env.reconcile(name).await;
    let output = env.reconcile(name).await;
    let calls = env.calls("RestoreDBInstanceToPointInTime").len();
    let is_requested = env.rds.instance(&format!("cdb-{name}")).is_some();
    assert_eq!(calls, usize::from(is_requested), "{name}");
    let told = output.error.is_some().then(|| Told::of(&output));
    assert_eq!(told.is_none(), is_requested, "{name}: {told:?}");
    told
}

#[tokio::test]
async fn backups_of_a_deleted_instance_without_tags_belong_to_the_object_in_its_identifier() {
    let env = Environment::start().await;
    let tags = [("uid", "9"), ("object", "billing/orders")];
    let elsewhere = deleted_elsewhere(&env, "cdb-9", &tags).await;
    let here = deleted(&env, "orders", &retaining(false)).await;
    for (name, id, owner) in [("a", &elsewhere, "UID 9"), ("b", &here, "UID orders")] {
        let told = restore(&env, name, id).await.expect("a refusal");
        let expected = (true, "SourceNotAllowed");
        assert_eq!((told.is_stalled, told.reason), expected, "{name}");
        for part in [owner, "database.example.com/object", "no data is read"] {
            assert!(told.message.contains(part), "{part}: {}", told.message);
        }
    }
    // An annotation counts only for the namespace of the object, which an administrator has to name.
    env.share("billing", "shop");
    let told = restore(&env, "c", &elsewhere).await.expect("a refusal");
    assert_eq!(told.reason, "SourceNotAllowed");
    tag_backups(&env, &elsewhere, "billing/orders").await;
    assert_eq!(restore(&env, "d", &elsewhere).await, None);
    env.share("billing", "reports");
    let told = restore(&env, "e", &elsewhere).await.expect("a refusal");
    assert!(told.message.contains("'billing'"), "{}", told.message);
    tag_backups(&env, &here, "shop/orders").await;
    assert_eq!(restore(&env, "f", &here).await, None);
}

#[tokio::test]
async fn backups_of_a_deleted_instance_that_no_object_created_have_no_owner() {
    let mut env = Environment::start().await;
    let id = deleted_elsewhere(&env, "legacy", &[("other", "tag")]).await;
    let told = restore(&env, "a", &id).await.expect("a refusal");
    assert_eq!(told.reason, "SourceNotAllowed");
    let command = format!("'database.example.com/allowed-sources={id}'");
    assert!(told.message.contains(&command), "{}", told.message);
    env.allow_sources(&id);
    assert_eq!(restore(&env, "b", &id).await, None);
    env.allow_sources("legacy");
    assert!(restore(&env, "c", &id).await.is_some(), "another name");
    env.set(|shared| shared.source_policy.unowned = UnownedSources::Allow);
    assert_eq!(restore(&env, "d", &id).await, None);
}

#[tokio::test]
async fn a_deleted_instance_with_tagged_snapshots_is_restored_in_its_namespace() {
    let env = Environment::start().await;
    let id = deleted(&env, "orders", &retaining(true)).await;
    let source = json!({"sourceResourceId": id, "latest": true});
    let fields = json!({"restoreFrom": {"pointInTime": source}});
    let restored = env.create("restored", &fields).await;
    let instance = env.rds.instance(&restored).expect("the instance");
    assert_eq!(instance["AllocatedStorage"], 20);
    let password = env.rds.password(&restored);
    assert_eq!(password.as_deref(), Some("correct-horse"));
    // Only they say whether the instance was encrypted.
    let calls = env.calls("DescribeDBInstanceAutomatedBackups");
    assert!(!calls.is_empty());
}

#[tokio::test]
async fn a_deleted_instance_whose_automated_backups_cannot_be_read_is_not_restored() {
    let env = Environment::start().await;
    let id = deleted(&env, "orders", &retaining(false)).await;
    let operation = "DescribeDBInstanceAutomatedBackups";
    let codes = ["AccessDenied", "Throttling", "InternalFailure"];
    for (number, code) in codes.into_iter().enumerate() {
        let refusal = Disturbance::Error(code.to_owned(), "by a test".to_owned());
        env.rds.inject(operation, refusal, usize::MAX);
        let name = number.to_string();
        let told = restore(&env, &name, &id).await.expect("an error");
        assert_eq!(told.is_stalled, code == "AccessDenied", "{code}");
        assert!(env.requests(operation, code) > 0, "{code}");
        env.rds.clear_injections();
    }
}
