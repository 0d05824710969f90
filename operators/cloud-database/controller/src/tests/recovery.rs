//! Disaster recovery, as the documentation describes it.

use serde_json::{Value, json};

use crate::tests::environment::{Environment, Told};

/// Stores the object of an instance again, as in a new cluster, where it has another UID.
fn apply_again(env: &Environment, fields: &Value) {
    env.store("orders", fields);
    env.edit("orders", |object| {
        object["metadata"]["uid"] = json!("orders-2");
    });
}

/// Gives an instance up as an administrator does: `aws rds remove-tags-from-resource`.
fn give_up(env: &Environment, id: &str) {
    let instance = env.rds.instance(id).expect("the instance");
    let tags = instance["TagList"].as_array().into_iter().flatten();
    let text = |tag: &Value, member: &str| tag[member].as_str().unwrap_or_default().to_owned();
    let kept: Vec<_> = tags
        .map(|tag| (text(tag, "Key"), text(tag, "Value")))
        .filter(|(key, _)| key != "database.example.com/uid")
        .collect();
    let kept: Vec<_> = kept.iter().map(|(key, value)| (&**key, &**value)).collect();
    env.rds.set_tags(id, &kept);
}

async fn reason(env: &Environment) -> &'static str {
    env.reconcile("orders").await;
    Told::of(&env.reconcile("orders").await).reason
}

#[tokio::test]
async fn instances_of_a_lost_cluster_are_taken_over_without_a_modification() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    env.rds.clear_journal();
    apply_again(&env, &json!({}));
    assert_eq!(reason(&env).await, "InstanceOfEarlierObject");
    let adopting = json!({"adopt": {"identifier": id}});
    apply_again(&env, &adopting);
    assert_eq!(reason(&env).await, "InstanceOwned");
    assert_eq!(env.object("orders")["status"]["phase"], "available");
    assert!(env.rds.writes().is_empty());
    give_up(&env, &id);
    let output = env.reconcile_repeatedly("orders").await;
    assert!(output.conditions[0].is_true, "{:?}", output.conditions);
    assert!(output.readiness.expect("a state").ready);
    let writes = env.rds.writes().into_iter();
    let writes: Vec<_> = writes.map(|(operation, _)| operation).collect();
    assert_eq!(writes, ["AddTagsToResource"], "nothing was modified");
    assert_eq!(env.rds.instance_ids(), [id]);
}

#[tokio::test]
async fn an_instance_moves_to_another_cluster_once_an_administrator_of_that_lists_it() {
    let old = Environment::start_in_cluster(Some("blue")).await;
    let id = old.create("orders", &json!({})).await;
    let new = old.in_another_cluster("green").await;
    apply_again(&new, &json!({"adopt": {"identifier": id}}));
    // The old object still owns it, whatever the administrator of the new cluster says.
    new.allow_sources("*");
    assert_eq!(reason(&new).await, "InstanceOwned");
    // It is given up, and the namespace has the same name in both clusters.
    give_up(&new, &id);
    new.rds.clear_journal();
    new.allow_sources("other");
    assert_eq!(reason(&new).await, "SourceNotAllowed");
    assert!(new.rds.writes().is_empty());
    new.allow_sources(&id);
    let output = new.reconcile_repeatedly("orders").await;
    assert!(output.conditions[0].is_true, "{:?}", output.conditions);
    let writes = new.rds.writes().into_iter();
    let writes: Vec<_> = writes.map(|(operation, _)| operation).collect();
    assert_eq!(writes, ["AddTagsToResource"], "nothing was modified");
    let tags = new.rds.instance(&id).expect("the instance")["TagList"].clone();
    let cluster = json!({"Key": "database.example.com/cluster", "Value": "green"});
    assert!(
        tags.as_array().is_some_and(|tags| tags.contains(&cluster)),
        "{tags}"
    );
}

#[tokio::test]
async fn a_deleted_instance_is_restored_from_its_final_snapshot() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    for _ in 0..4 {
        env.finalize("orders").await;
        env.rds.advance(std::time::Duration::from_hours(1));
    }
    assert!(env.rds.instance_ids().is_empty());
    let snapshot = format!("{id}-final");
    apply_again(&env, &json!({"restoreFrom": {"snapshot": snapshot}}));
    let output = env.reconcile_repeatedly("orders").await;
    assert!(output.conditions[0].is_true, "{:?}", output.conditions);
    assert_eq!(env.rds.instance_ids(), ["cdb-orders-2"]);
}
