//! Quotas of a namespace: what exceeds them waits, and what runs stays.

use serde_json::json;

use crate::tests::environment::{Environment, Told};

#[tokio::test]
async fn an_instance_above_the_quota_waits_until_another_one_is_gone() {
    let mut env = Environment::start().await;
    let quota = json!({"instances": 1});
    let first = env.create("a", &json!({"deletionPolicy": "Delete"})).await;
    env.set_quota(&quota);
    env.store("b", &json!({}));
    env.reconcile("b").await;
    let told = Told::of(&env.reconcile("b").await);
    assert_eq!((told.is_stalled, told.reason), (true, "QuotaExceeded"));
    let part = "settings.cloudDatabase.namespaces.shop.quota.instances";
    assert!(told.message.contains(part), "{}", told.message);
    assert_eq!(env.rds.instance_ids(), [first.as_str()]);
    // What runs is not touched.
    let output = env.reconcile("a").await;
    assert!(output.conditions[0].is_true, "{output:?}");
    // A process that has just started reads what exists.
    env.set(|shared| shared.quotas = Default::default());
    assert_eq!(Told::of(&env.reconcile("b").await).reason, "QuotaExceeded");
    for _ in 0..5 {
        env.finalize("a").await;
        env.rds.advance(std::time::Duration::from_hours(1));
    }
    assert!(env.rds.instance_ids().is_empty());
    let output = env.reconcile("b").await;
    assert!(output.error.is_none(), "{:?}", output.error);
}

#[tokio::test]
async fn a_growth_above_the_quota_is_not_requested_and_keeps_nothing_else() {
    let mut env = Environment::start().await;
    let id = env.create("a", &json!({})).await;
    env.create("b", &json!({})).await;
    env.set_quota(&json!({"storageGib": 60}));
    env.edit("a", |object| {
        object["spec"]["storage"]["sizeGib"] = json!(41);
        object["spec"]["backup"] = json!({"copyTagsToSnapshot": false});
    });
    let output = env.reconcile_recorded("a").await;
    let synced = &output.conditions[0];
    assert_eq!((synced.is_true, synced.reason), (false, "QuotaExceeded"));
    assert!(output.readiness.is_some_and(|it| it.ready), "it runs");
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["AllocatedStorage"], 20);
    assert_eq!(instance["CopyTagsToSnapshot"], false);
    env.edit("a", |object| {
        object["spec"]["storage"]["sizeGib"] = json!(40);
    });
    let output = env.reconcile_repeatedly("a").await;
    assert!(output.conditions[0].is_true, "{output:?}");
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["AllocatedStorage"], 40);
}
