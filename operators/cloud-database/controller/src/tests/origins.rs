//! Instances that are restored or that replicate others.

use rds_simulator::{Disturbance, End};
use serde_json::{Value, json};

use crate::tests::environment::{Environment, Told};

#[tokio::test]
async fn a_replica_whose_source_is_removed_from_the_spec_early_is_promoted() {
    for disturbance in [None, Some(Disturbance::LostAnswer)] {
        let env = Environment::start().await;
        let source = env.create("source", &json!({})).await;
        env.store("reader", &json!({"replicaOf": {"identifier": source}}));
        env.reconcile("reader").await;
        let is_lost = disturbance.is_some();
        if let Some(disturbance) = disturbance {
            let operation = "CreateDBInstanceReadReplica";
            env.rds.inject(operation, disturbance, 1);
            assert!(env.reconcile("reader").await.error.is_some());
        }
        let output = env.reconcile("reader").await;
        assert!(output.error.is_none(), "{:?}", output.error);
        assert_eq!(env.object("reader")["status"]["replicaOf"], source.as_str());
        // Nothing has described the replica yet.
        env.edit("reader", |object| {
            let spec = object["spec"].as_object_mut().expect("fields");
            spec.remove("replicaOf");
        });
        env.rds.advance(std::time::Duration::from_hours(1));
        env.reconcile_repeatedly("reader").await;
        assert_eq!(env.rds.calls("PromoteReadReplica").len(), 1, "{is_lost}");
        let replica = env.rds.instance("cdb-reader").expect("the instance");
        assert_eq!(
            replica["ReadReplicaSourceDBInstanceIdentifier"],
            Value::Null
        );
    }
}

#[tokio::test]
async fn an_adopted_instance_with_magnetic_storage_is_migrated_as_observing_it_shows() {
    let env = Environment::start().await;
    env.rds.create_instance(json!({
        "DBInstanceIdentifier": "legacy", "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 10, "StorageType": "standard",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse", "StorageEncrypted": true,
        "PubliclyAccessible": false, "BackupRetentionPeriod": 7, "CopyTagsToSnapshot": true,
    }));
    env.rds.advance(std::time::Duration::from_hours(1));
    env.allow_sources("legacy");
    let fields = json!({
        "adopt": {"identifier": "legacy"}, "engineVersion": "16", "managementPolicy": "Observe",
    });
    env.store("legacy", &fields);
    let output = env.reconcile("legacy").await;
    let message = &output.conditions[0].message;
    assert!(message.contains("storage.type"), "{message}");
    assert!(message.contains("storage.sizeGib"), "{message}");
    assert!(env.rds.writes().is_empty());
    env.edit("legacy", |object| {
        object["spec"]["managementPolicy"] = json!("Manage");
    });
    env.reconcile("legacy").await;
    let output = env.reconcile("legacy").await;
    let message = &output.conditions[0].message;
    let expected = "storage.type now, with a brief outage";
    assert!(message.contains(expected), "{message}");
    env.rds.advance(std::time::Duration::from_hours(24));
    env.reconcile_repeatedly("legacy").await;
    let instance = env.rds.instance("legacy").expect("the instance");
    let storage = (&instance["StorageType"], &instance["AllocatedStorage"]);
    assert_eq!(storage, (&json!("gp3"), &json!(20)));
}

#[tokio::test]
async fn a_promotion_has_the_words_of_the_table_of_effects() {
    let env = Environment::start().await;
    let source = env.create("source", &json!({})).await;
    let replica = json!({"replicaOf": {"identifier": source}});
    env.create("reader", &replica).await;
    env.edit("reader", |object| {
        let spec = object["spec"].as_object_mut().expect("fields");
        spec.remove("replicaOf");
    });
    let output = env.reconcile("reader").await;
    let expected = "replicaOf now, with a restart of the database (the replica is promoted)";
    let condition = &output.conditions[0];
    assert!(condition.message.contains(expected), "{condition:?}");
    assert!(output.events[0].note.ends_with(expected));
}

#[tokio::test]
async fn a_size_that_rds_refuses_is_not_accepted_and_can_be_taken_back() {
    let env = Environment::start().await;
    env.create("orders", &json!({})).await;
    let size = |size: i32| {
        env.edit("orders", |object| {
            object["spec"]["storage"]["sizeGib"] = json!(size);
        });
    };
    size(200);
    let code = "StorageQuotaExceeded".to_owned();
    let refusal = Disturbance::Error(code, "too much".to_owned());
    env.rds.inject("ModifyDBInstance", refusal, 1);
    let output = env.reconcile("orders").await;
    assert_eq!(output.conditions[0].reason, "Rejected");
    let status = env.object("orders")["status"].clone();
    let reported = (
        &status["allocatedStorageGib"],
        &status["acceptedStorageGib"],
    );
    assert_eq!(reported, (&json!(20), &Value::Null));
    size(20);
    let output = env.reconcile("orders").await;
    assert!(output.conditions[0].is_true, "{:?}", output.conditions);
    // What RDS has accepted is recorded at once.
    size(100);
    env.reconcile("orders").await;
    let status = env.object("orders")["status"].clone();
    assert_eq!(status["acceptedStorageGib"], 100);
}

/// A replica with full storage cannot be promoted, and would never get more.
#[tokio::test]
async fn full_storage_of_a_replica_that_is_to_be_promoted_is_cured_first() {
    let env = Environment::start().await;
    let source = env.create("source", &json!({})).await;
    env.create("reader", &json!({"replicaOf": {"identifier": source}}))
        .await;
    env.rds
        .force_status("cdb-reader", "storage-full", End::Released);
    env.edit("reader", |object| {
        let spec = object["spec"].as_object_mut().expect("fields");
        spec.remove("replicaOf");
        spec["storage"]["sizeGib"] = json!(40);
    });
    env.reconcile_repeatedly("reader").await;
    let replica = env.rds.instance("cdb-reader").expect("the instance");
    assert_eq!(replica["AllocatedStorage"], 40);
    assert_eq!(env.rds.calls("PromoteReadReplica").len(), 1);
}

#[tokio::test]
async fn an_instance_of_an_earlier_object_with_the_name_can_be_replicated() {
    let env = Environment::start().await;
    let source = env.create("orders", &json!({})).await;
    env.store("orders", &json!({"replicaOf": {"identifier": source}}));
    env.edit("orders", |object| {
        object["metadata"]["uid"] = json!("orders-2");
    });
    env.reconcile_repeatedly("orders").await;
    assert!(env.rds.instance("cdb-orders-2").is_some());
}

#[tokio::test]
async fn a_replica_of_an_earlier_object_gets_no_twin() {
    let env = Environment::start().await;
    let source = env.create("source", &json!({})).await;
    let fields = json!({"replicaOf": {"identifier": source}});
    env.create("reader", &fields).await;
    // As if it was restored from a backup.
    env.store("reader", &fields);
    env.edit("reader", |object| {
        object["metadata"]["uid"] = json!("reader-2");
    });
    let mut output = env.reconcile("reader").await;
    for _ in 0..3 {
        output = env.reconcile("reader").await;
    }
    let told = Told::of(&output);
    assert_eq!(
        (told.is_stalled, told.reason),
        (true, "InstanceOfEarlierObject")
    );
    assert!(told.message.contains("cdb-reader"), "{}", told.message);
    assert_eq!(env.rds.calls("CreateDBInstanceReadReplica").len(), 1);
}
