//! `CreateDBSnapshot`, `DeleteDBSnapshot` and `DescribeDBSnapshots`.

use std::time::Duration;

use aws_sdk_rds::types::Tag;
use rds_simulator::End;

use crate::client::{available, code, creation, outcome, settle, start, status};

#[tokio::test]
async fn a_snapshot_is_taken_while_its_instance_is_backing_up() {
    let (simulator, client) = start().await;
    let tag = Tag::builder().key("team").value("orders").build();
    let request = creation(&client, "orders").copy_tags_to_snapshot(true);
    request.tags(tag).send().await.expect("an instance");
    settle(&simulator);
    simulator.set_timing(|timing| timing.snapshot = Duration::from_mins(5));
    let create = |snapshot: &str| {
        let call = client.create_db_snapshot().db_instance_identifier("orders");
        call.db_snapshot_identifier(snapshot).send()
    };
    let taken = create("first").await.expect("a snapshot");
    let taken = taken.db_snapshot().expect("a snapshot");
    assert_eq!(taken.status(), Some("creating"));
    assert_eq!(taken.tag_list()[0].value(), Some("orders"));
    assert_eq!(status(&client, "orders").await, "backing-up");
    assert_eq!(outcome(create("FIRST").await), "DBSnapshotAlreadyExists");
    let delete = || {
        client
            .delete_db_snapshot()
            .db_snapshot_identifier("first")
            .send()
    };
    assert_eq!(outcome(delete().await), "InvalidDBSnapshotState");
    simulator.advance(Duration::from_mins(5));
    assert_eq!(status(&client, "orders").await, "available");
    let list = async |snapshot: Option<&str>, kind: Option<&str>| {
        let call = client.describe_db_snapshots();
        let call = call.set_db_snapshot_identifier(snapshot.map(String::from));
        let call = call.set_snapshot_type(kind.map(String::from));
        match call.send().await {
            Ok(page) => Ok(page.db_snapshots().len()),
            Err(error) => Err(code(&error)),
        }
    };
    assert_eq!(list(None, None).await, Ok(2));
    assert_eq!(list(None, Some("manual")).await, Ok(1));
    assert_eq!(list(None, Some("automated")).await, Ok(1));
    assert_eq!(list(Some("first"), None).await, Ok(1));
    assert_eq!(outcome(delete().await), "");
    assert_eq!(outcome(delete().await), "DBSnapshotNotFound");
    let missing = Err("DBSnapshotNotFound".to_owned());
    assert_eq!(list(Some("first"), None).await, missing);
    let other = client
        .describe_db_snapshots()
        .db_instance_identifier("none");
    let other = other.send().await.expect("an empty list");
    assert!(other.db_snapshots().is_empty());
}

#[tokio::test]
async fn a_snapshot_needs_an_instance_in_a_suitable_state_and_a_quota() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let create = |instance: &str, snapshot: &str| {
        let call = client.create_db_snapshot().db_instance_identifier(instance);
        call.db_snapshot_identifier(snapshot).send()
    };
    assert_eq!(outcome(create("none", "a").await), "DBInstanceNotFound");
    assert_eq!(
        outcome(create("orders", "a--b").await),
        "InvalidParameterValue"
    );
    simulator.force_status("orders", "incompatible-network", End::Released);
    assert_eq!(
        outcome(create("orders", "a").await),
        "InvalidDBInstanceState"
    );
    simulator.release("orders");
    simulator.set_quotas(|quotas| quotas.snapshots = 1);
    assert_eq!(outcome(create("orders", "a").await), "");
    assert_eq!(
        outcome(create("orders", "b").await),
        "SnapshotQuotaExceeded"
    );
}
