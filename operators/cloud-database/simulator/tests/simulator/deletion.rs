//! `DeleteDBInstance`: states, final snapshots, and errors.

use std::time::Duration;

use aws_sdk_rds::Client;
use aws_sdk_rds::operation::delete_db_instance::builders::DeleteDBInstanceFluentBuilder as Deletion;
use rds_simulator::End;

use crate::client::{available, creation, outcome, settle, start, status};

fn deletion(client: &Client, id: &str) -> Deletion {
    client.delete_db_instance().db_instance_identifier(id)
}

#[tokio::test]
async fn an_instance_is_deleted_after_its_final_snapshot_was_taken() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.set_timing(|timing| timing.snapshot = Duration::from_mins(10));
    let request = deletion(&client, "orders").final_db_snapshot_identifier("orders-final");
    let answer = request.send().await.expect("an answer");
    let instance = answer.db_instance().expect("an instance");
    assert_eq!(instance.db_instance_status(), Some("deleting"));
    let snapshot = |field: &str| {
        let snapshots = simulator.snapshots().into_iter();
        let mut manual = snapshots.filter(|it| it["SnapshotType"] == "manual");
        manual.next().expect("a snapshot")[field].clone()
    };
    assert_eq!(snapshot("Status"), "creating");
    assert_eq!(snapshot("SnapshotCreateTime"), serde_json::Value::Null);
    simulator.advance(Duration::from_mins(10));
    assert_eq!(snapshot("Status"), "available");
    assert_ne!(snapshot("SnapshotCreateTime"), serde_json::Value::Null);
    assert_eq!(status(&client, "orders").await, "deleting");
    settle(&simulator);
    assert_eq!(status(&client, "orders").await, "DBInstanceNotFound");
    // The automated backups are deleted with the instance.
    assert_eq!(simulator.snapshots().len(), 1);
    // The identifier is free for another instance.
    let again = available(&simulator, &client, "orders").await;
    assert_ne!(again.dbi_resource_id(), instance.dbi_resource_id());
    let request = deletion(&client, "orders").final_db_snapshot_identifier("Orders-Final");
    assert_eq!(outcome(request.send().await), "DBSnapshotAlreadyExists");
    assert_eq!(status(&client, "orders").await, "available");
}

/// Change of a request.
type Change = fn(Deletion) -> Deletion;

#[tokio::test]
async fn a_deletion_that_violates_a_constraint_is_rejected_with_the_documented_code() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let cases: &[(&str, Change)] = &[
        ("DBInstanceNotFound", |it| it.db_instance_identifier("none")),
        ("InvalidParameterCombination", |it| it),
        ("InvalidParameterCombination", |it| {
            it.skip_final_snapshot(true)
                .final_db_snapshot_identifier("a")
        }),
        ("InvalidParameterValue", |it| {
            it.final_db_snapshot_identifier("a--b")
        }),
    ];
    for (expected, change) in cases {
        let result = change(deletion(&client, "orders")).send().await;
        assert_eq!(outcome(result), *expected);
    }
    simulator.set_quotas(|quotas| quotas.snapshots = 0);
    let request = deletion(&client, "orders").final_db_snapshot_identifier("a");
    assert_eq!(outcome(request.send().await), "SnapshotQuotaExceeded");
    // In a failure state, RDS can take no snapshot.
    for failure in ["failed", "incompatible-restore", "incompatible-network"] {
        simulator.force_status("orders", failure, End::Released);
        let request = deletion(&client, "orders").final_db_snapshot_identifier("a");
        assert_eq!(outcome(request.send().await), "InvalidDBInstanceState");
    }
    let skip = || deletion(&client, "orders").skip_final_snapshot(true);
    simulator.change("orders", serde_json::json!({"DeletionProtection": true}));
    assert_eq!(outcome(skip().send().await), "InvalidParameterCombination");
    simulator.change("orders", serde_json::json!({"DeletionProtection": false}));
    assert_eq!(outcome(skip().send().await), "");
    assert_eq!(outcome(skip().send().await), "InvalidDBInstanceState");
    creation(&client, "fresh")
        .send()
        .await
        .expect("an instance");
    let request = deletion(&client, "fresh").skip_final_snapshot(true);
    assert_eq!(outcome(request.send().await), "InvalidDBInstanceState");
}
