//! Adoption of existing instances, on a simulator of RDS: nothing is modified, and each instance can be given back.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::ListParams;
use lockstep_envtest::eventually;
use rds_simulator::{Outcome, Simulator};
use serde_json::{Value, json};

use crate::env::{NAMESPACE, TestEnv, condition, database};

const COUNT: usize = 100;

/// Tag of the owner of an instance.
const OWNER: &str = "database.example.com/uid";

fn identifier(number: usize) -> String {
    format!("orders-{number}")
}

/// Settings of instances, with the fields of the spec that an object needs for them. The spec leaves the others open.
fn settings() -> [(Value, Value); 8] {
    const ROLE: &str = "arn:aws:iam::123456789012:role/rds-monitoring";
    let io1 = json!({"storage": {"sizeGib": 100, "type": "io1", "iops": 1_000}});
    let managed = json!({"credentials": {"username": "app", "managed": {}}});
    [
        (json!({}), json!({})),
        (
            json!({"MultiAZ": true, "DeletionProtection": true}),
            json!({}),
        ),
        (
            json!({"MaxAllocatedStorage": 500, "BackupRetentionPeriod": 0}),
            json!({}),
        ),
        (json!({"StorageType": "io1", "Iops": 1_000}), io1),
        (
            json!({"MonitoringInterval": 60, "MonitoringRoleArn": ROLE}),
            json!({}),
        ),
        (
            json!({"EnablePerformanceInsights": true, "EnableCloudwatchLogsExports": ["postgresql"]}),
            json!({}),
        ),
        (
            json!({"EnableIAMDatabaseAuthentication": true, "AutoMinorVersionUpgrade": false}),
            json!({"iamAuthentication": true, "autoMinorVersionUpgrade": false}),
        ),
        (
            json!({"MasterUserPassword": null, "ManageMasterUserPassword": true}),
            managed,
        ),
    ]
}

/// Returns an object with the members of another one in place of its own.
fn with(mut object: Value, others: &Value) -> Value {
    for (name, value) in others.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

/// Creates an instance as the rds-controller of ACK does.
fn create_as_ack(rds: &Simulator, identifier: &str, settings: &Value) {
    let parameters = json!({
        "DBInstanceIdentifier": identifier, "Engine": "postgres", "EngineVersion": "16.9",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 100, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse",
        "StorageEncrypted": true, "PubliclyAccessible": false,
        "Tags": [
            {"Key": "services.k8s.aws/controller-version", "Value": "rds-v1.11.1"},
            {"Key": "services.k8s.aws/namespace", "Value": "default"},
        ],
    });
    let mut parameters = with(parameters, settings);
    let members = parameters.as_object_mut().expect("members");
    members.retain(|_, value| !value.is_null());
    rds.create_instance(parameters);
}

/// Returns the object that adopts an instance.
fn adopting(name: &str, identifier: &str, policy: &str) -> Value {
    let mut object = database(name);
    object["spec"]["adopt"] = json!({"identifier": identifier});
    object["spec"]["managementPolicy"] = json!(policy);
    object["spec"]["deletionPolicy"] = json!("Retain");
    object["spec"]["engineVersion"] = json!("16");
    object["spec"]["backup"] = json!({"copyTagsToSnapshot": false});
    object
}

/// Lets the objects of the namespace adopt instances without an owner.
fn allow_sources(env: &TestEnv, sources: &str) {
    let annotation = format!("database.example.com/allowed-sources={sources}");
    env.kubectl(&[
        "annotate",
        "--overwrite",
        "namespace",
        NAMESPACE,
        &annotation,
    ])
    .unwrap_or_else(|error| env.fail(&error));
}

/// Applies all objects at once.
fn apply(env: &TestEnv, policy: &str) {
    let objects = (0..COUNT).map(|number| {
        let identifier = identifier(number);
        let mut object = adopting(&identifier, &identifier, policy);
        let (_, fields) = &settings()[number % settings().len()];
        object["spec"] = with(object["spec"].take(), fields);
        object
    });
    let list = json!({
        "apiVersion": "v1", "kind": "List", "metadata": {"name": "all"},
        "items": objects.collect::<Vec<_>>(),
    });
    env.kubectl_apply(&list)
        .unwrap_or_else(|error| env.fail(&error));
}

/// Waits until the condition `Synced` of all objects has a reason, for their current generations.
async fn synced(env: &TestEnv, reason: &str) {
    let what = format!("{COUNT} objects with the reason {reason}");
    let found = eventually(&what, async || {
        let objects = env.databases().list(&ListParams::default()).await.ok()?;
        let count = objects.iter().filter(|object| {
            condition(object, "Synced").is_some_and(|it| {
                it.reason == reason && it.observed_generation == object.metadata.generation
            }) && condition(object, "Ready").is_some_and(|it| it.status == "True")
        });
        (count.count() == COUNT).then_some(())
    });
    found
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Returns all instances as RDS reports them, without what changes with the time.
fn instances(rds: &Simulator) -> Vec<Value> {
    let ids = rds.instance_ids().into_iter();
    let instances = ids.map(|id| {
        let mut instance = rds.instance(&id).expect("the instance");
        let members = instance.as_object_mut().expect("members");
        members.remove("LatestRestorableTime");
        members.remove("CertificateDetails");
        instance
    });
    instances.collect()
}

/// Returns the number of calls that modified something, by operation, all of which succeeded.
fn writes(rds: &Simulator) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (operation, outcome) in rds.writes() {
        assert_eq!(outcome, Outcome::Succeeded, "{operation}");
        *counts.entry(operation).or_default() += 1;
    }
    counts
}

fn is_owned(instance: &Value) -> bool {
    let mut tags = instance["TagList"].as_array().into_iter().flatten();
    tags.any(|tag| tag["Key"] == OWNER)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_instances_of_ack_are_adopted_without_a_modification_and_given_back() {
    let (env, rds) = TestEnv::start_on_simulator().await;
    rds.set_quotas(|quotas| {
        quotas.instances = 2 * COUNT;
        quotas.storage = 10_000_000;
    });
    for number in 0..COUNT {
        let (settings, _) = &settings()[number % settings().len()];
        create_as_ack(&rds, &identifier(number), settings);
    }
    let available = eventually("the instances", async || {
        let instances = instances(&rds);
        let mut statuses = instances.iter().map(|it| &it["DBInstanceStatus"]);
        statuses.all(|status| status == "available").then_some(())
    });
    available
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let before = instances(&rds);

    apply(&env, "Observe");
    synced(&env, "Observed").await;
    assert_eq!(writes(&rds), BTreeMap::new());
    assert_eq!(instances(&rds), before);

    allow_sources(&env, "orders-*");
    apply(&env, "Manage");
    synced(&env, "Synced").await;
    let tagged = BTreeMap::from([("AddTagsToResource".to_owned(), COUNT)]);
    assert_eq!(writes(&rds), tagged, "only tags were added");
    let adopted = instances(&rds);
    assert!(adopted.iter().all(is_owned));
    for (before, adopted) in before.iter().zip(&adopted) {
        let (mut before, mut adopted) = (before.clone(), adopted.clone());
        let old = before["TagList"].take();
        let new = adopted["TagList"].take();
        let kept = old.as_array().into_iter().flatten();
        let mut kept = kept.map(|tag| new.as_array().is_some_and(|new| new.contains(tag)));
        assert!(kept.all(|is_kept| is_kept), "{new}");
        assert_eq!(before, adopted);
    }

    // The way back.
    rds.clear_journal();
    env.kubectl(&["delete", "cdb", "--all", "--wait=false"])
        .unwrap_or_else(|error| env.fail(&error));
    let gone = eventually("the deletion of the objects", async || {
        let objects = env.databases().list(&ListParams::default()).await.ok()?;
        objects.items.is_empty().then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    let untagged = BTreeMap::from([("RemoveTagsFromResource".to_owned(), COUNT)]);
    assert_eq!(writes(&rds), untagged, "only tags were removed");
    assert_eq!(instances(&rds), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_adopted_only_if_it_has_no_owner_and_can_match_the_spec() {
    let (env, rds) = TestEnv::start_on_simulator().await;
    let apply = |object: &Value| {
        env.kubectl_apply(object)
            .unwrap_or_else(|error| env.fail(&error));
    };
    create_as_ack(&rds, "orders", &json!({}));
    create_as_ack(&rds, "billing", &json!({}));
    // No administrator has allowed it. Once one has, the object does not wait for its next reconciliation, which is an hour ahead.
    apply(&adopting("orders", "orders", "Manage"));
    let refused = env
        .condition_because("orders", "Stalled", "SourceNotAllowed")
        .await;
    let command = "kubectl annotate namespace default --overwrite 'database.example.com/allowed-sources=orders'";
    assert!(refused.message.contains(command), "{}", refused.message);
    allow_sources(&env, "other");
    env.condition_because("orders", "Stalled", "SourceNotAllowed")
        .await;
    assert_eq!(writes(&rds), BTreeMap::new());
    allow_sources(&env, "orders,billing");
    env.condition("orders", "Synced", "True").await;
    let owner = env.databases().get("orders").await.expect("the object");
    let owner = owner.uid().expect("a UID");
    assert!(is_owned(&rds.instance("orders").expect("the instance")));
    let instance = rds.instance("billing").expect("the instance");
    rds.clear_journal();

    // It belongs to another object.
    apply(&adopting("second", "orders", "Manage"));
    let refused = env
        .condition_because("second", "Stalled", "InstanceOwned")
        .await;
    assert!(refused.message.contains(&owner), "{}", refused.message);
    assert!(refused.message.contains("default/orders"));
    // It does not exist.
    apply(&adopting("third", "none", "Manage"));
    env.condition_because("third", "Stalled", "InstanceNotFound")
        .await;
    // It can never match the spec.
    let mut other = adopting("fourth", "billing", "Manage");
    other["spec"]["engine"] = json!("mysql");
    other["spec"]["engineVersion"] = json!("8.4");
    apply(&other);
    let refused = env
        .condition_because("fourth", "Stalled", "AdoptionConflict")
        .await;
    assert!(refused.message.contains("engine is 'postgres'"));
    // It is only observed, also when the object is deleted.
    let mut observed = adopting("fifth", "billing", "Observe");
    observed["spec"]["instanceClass"] = json!("db.m7g.large");
    observed["spec"]["multiAz"] = json!(true);
    observed["spec"]["tags"] = json!({"team": "shop"});
    observed["spec"]["deletionPolicy"] = json!("Delete");
    apply(&observed);
    let synced = env
        .condition_because("fifth", "Synced", "ObservedDifferent")
        .await;
    for field in ["instanceClass", "multiAz", "tags"] {
        assert!(synced.message.contains(field), "{}", synced.message);
    }
    env.condition("fifth", "Ready", "True").await;

    for name in ["second", "third", "fourth", "fifth"] {
        let object = format!("cdb/{name}");
        env.kubectl(&["delete", &object, "--timeout=20s"])
            .unwrap_or_else(|error| env.fail(&error));
    }
    assert_eq!(writes(&rds), BTreeMap::new());
    let kept = |instance: &Value| {
        (
            instance["TagList"].clone(),
            instance["DBInstanceClass"].clone(),
        )
    };
    let billing = rds.instance("billing").expect("the instance");
    assert_eq!(kept(&billing), kept(&instance));

    // What is adopted needs no consent any more.
    allow_sources(&env, "other");
    // The deletion of an adopted instance follows the deletion policy.
    let patch = json!({"spec": {"deletionPolicy": "Delete"}}).to_string();
    env.kubectl(&["patch", "cdb/orders", "--type=merge", "--patch", &patch])
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Synced", "True").await;
    env.kubectl(&["delete", "cdb/orders", "--timeout=20s"])
        .unwrap_or_else(|error| env.fail(&error));
    assert_eq!(rds.instance_ids(), ["billing"]);
}
