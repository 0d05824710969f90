//! `RestoreDBInstanceFromDBSnapshot`, `RestoreDBInstanceToPointInTime`, `CreateDBInstanceReadReplica` and
//! `PromoteReadReplica`.

use std::time::Duration;

use aws_sdk_rds::Client;
use aws_sdk_rds::primitives::DateTime;
use aws_sdk_rds::types::{DbInstance, Tag};
use rds_simulator::Simulator;

use crate::client::{available, creation, describe, outcome, settle, start, status};

/// Creates an instance with a tag and a snapshot.
async fn with_snapshot(simulator: &Simulator, client: &Client) -> DbInstance {
    let tag = Tag::builder().key("team").value("orders").build();
    let request = creation(client, "orders").tags(tag).storage_encrypted(true);
    request.send().await.expect("an instance");
    settle(simulator);
    let call = client.create_db_snapshot().db_instance_identifier("orders");
    let call = call.db_snapshot_identifier("before").send().await;
    call.expect("a snapshot");
    settle(simulator);
    describe(client, "orders").await.expect("the instance")
}

#[tokio::test]
async fn a_snapshot_is_restored_as_a_new_instance() {
    let (simulator, client) = start().await;
    let source = with_snapshot(&simulator, &client).await;
    let restore = |id: &str| {
        let call = client.restore_db_instance_from_db_snapshot();
        call.db_instance_identifier(id)
            .db_snapshot_identifier("before")
    };
    let restored = restore("restored").send().await.expect("an instance");
    let restored = restored.db_instance().expect("an instance");
    assert_eq!(restored.db_instance_status(), Some("creating"));
    settle(&simulator);
    let restored = describe(&client, "restored").await.expect("the instance");
    assert_eq!(restored.db_instance_status(), Some("available"));
    assert_eq!(restored.engine_version(), source.engine_version());
    assert_eq!(restored.allocated_storage(), Some(100));
    assert_eq!(restored.kms_key_id(), source.kms_key_id());
    assert_eq!(restored.master_username(), Some("app"));
    assert_ne!(restored.dbi_resource_id(), source.dbi_resource_id());
    assert_eq!(
        simulator.password("restored").as_deref(),
        Some("correct-horse")
    );
    // Without new tags, the instance has those of its source.
    assert_eq!(restored.tag_list(), source.tag_list());
    let tag = Tag::builder().key("team").value("billing").build();
    let tagged = restore("tagged").tags(tag.clone()).send().await;
    let tagged = tagged.expect("an instance");
    let tagged = tagged.db_instance().expect("an instance");
    assert_eq!(tagged.tag_list(), [tag]);

    for (expected, call) in [
        ("DBInstanceAlreadyExists", restore("orders")),
        (
            "DBSnapshotNotFound",
            restore("a").db_snapshot_identifier("none"),
        ),
        (
            "MissingParameter",
            restore("a").set_db_snapshot_identifier(None),
        ),
        (
            "DBClusterSnapshotNotFoundFault",
            restore("a").db_cluster_snapshot_identifier("none"),
        ),
        ("InvalidRestoreFault", restore("a").engine("mysql")),
        (
            "InvalidParameterCombination",
            restore("a").allocated_storage(50),
        ),
        (
            "DBSubnetGroupNotFoundFault",
            restore("a").db_subnet_group_name("none"),
        ),
    ] {
        assert_eq!(outcome(call.send().await), expected);
    }
    simulator.force_snapshot_status("before", "creating");
    assert_eq!(outcome(restore("a").send().await), "InvalidDBSnapshotState");
    simulator.force_snapshot_status("before", "available");
    simulator.remove_kms_key("alias/aws/rds");
    assert_eq!(
        outcome(restore("a").send().await),
        "KMSKeyNotAccessibleFault"
    );
}

#[tokio::test]
async fn an_earlier_state_is_restored_as_a_new_instance() {
    let (simulator, client) = start().await;
    let source = with_snapshot(&simulator, &client).await;
    let restore = |id: &str| {
        let call = client.restore_db_instance_to_point_in_time();
        call.target_db_instance_identifier(id)
            .source_db_instance_identifier("orders")
    };
    simulator.advance(Duration::from_hours(1));
    let latest = restore("latest")
        .use_latest_restorable_time(true)
        .send()
        .await;
    assert_eq!(outcome(latest), "");
    let time = DateTime::from_secs(simulator.now().as_second() - 1_800);
    let earlier = restore("earlier").restore_time(time).send().await;
    assert_eq!(outcome(earlier), "");
    settle(&simulator);
    assert_eq!(status(&client, "earlier").await, "available");
    let id = source.dbi_resource_id().expect("a resource ID");
    let by_id = restore("by-id").set_source_db_instance_identifier(None);
    let by_id = by_id
        .source_dbi_resource_id(id)
        .use_latest_restorable_time(true);
    assert_eq!(outcome(by_id.send().await), "");

    let now = DateTime::from_secs(simulator.now().as_second());
    for (expected, call) in [
        ("InvalidParameterCombination", restore("a")),
        (
            "InvalidParameterCombination",
            restore("a")
                .restore_time(time)
                .use_latest_restorable_time(true),
        ),
        ("InvalidParameterValue", restore("a").restore_time(now)),
        (
            "DBInstanceNotFound",
            restore("a").source_db_instance_identifier("none"),
        ),
        (
            "DBInstanceAlreadyExists",
            restore("orders").use_latest_restorable_time(true),
        ),
        (
            "DBInstanceAutomatedBackupNotFound",
            restore("a").source_db_instance_automated_backups_arn("none"),
        ),
    ] {
        assert_eq!(outcome(call.send().await), expected);
    }
    let request = creation(&client, "unsaved").backup_retention_period(0);
    request.send().await.expect("an instance");
    let unsaved = || restore("a").source_db_instance_identifier("unsaved");
    let unsaved = || unsaved().use_latest_restorable_time(true).send();
    assert_eq!(outcome(unsaved().await), "InvalidDBInstanceState");
    settle(&simulator);
    assert_eq!(outcome(unsaved().await), "PointInTimeRestoreNotEnabled");
}

#[tokio::test]
async fn an_instance_whose_password_rds_manages_has_no_replicas() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let replica = || {
        let call = client.create_db_instance_read_replica();
        let call = call.db_instance_identifier("reader");
        call.source_db_instance_identifier("orders").send()
    };
    let modify = || client.modify_db_instance().db_instance_identifier("orders");
    let manage = modify().manage_master_user_password(true).send().await;
    assert_eq!(outcome(manage), "");
    settle(&simulator);
    assert_eq!(outcome(replica().await), "InvalidParameterValue");
    let own = modify().manage_master_user_password(false);
    let own = own.master_user_password("correct-horse").send().await;
    assert_eq!(outcome(own), "");
    settle(&simulator);
    assert_eq!(outcome(replica().await), "");
}

#[tokio::test]
async fn a_replica_follows_its_source_until_the_source_is_deleted() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let replica = |id: &str, source: &str| {
        let call = client.create_db_instance_read_replica();
        call.db_instance_identifier(id)
            .source_db_instance_identifier(source)
            .send()
    };
    assert_eq!(outcome(replica("reader", "orders").await), "");
    settle(&simulator);
    let reader = describe(&client, "reader").await.expect("the replica");
    assert_eq!(
        reader.read_replica_source_db_instance_identifier(),
        Some("orders")
    );
    assert_eq!(reader.status_infos()[0].status(), Some("replicating"));
    let source = describe(&client, "orders").await.expect("the source");
    assert_eq!(source.read_replica_db_instance_identifiers(), ["reader"]);

    assert_eq!(outcome(replica("a", "none").await), "DBInstanceNotFound");
    assert_eq!(
        outcome(replica("a", "reader").await),
        "InvalidDBInstanceState"
    );
    assert_eq!(
        outcome(replica("orders", "orders").await),
        "DBInstanceAlreadyExists"
    );
    let disable = client.modify_db_instance().db_instance_identifier("orders");
    let disable = disable.backup_retention_period(0).send().await;
    assert_eq!(outcome(disable), "InvalidParameterCombination");
    for id in ["orders", "reader"] {
        let stop = client.stop_db_instance().db_instance_identifier(id);
        assert_eq!(outcome(stop.send().await), "InvalidDBInstanceState");
    }
    let delete = |id: &str| client.delete_db_instance().db_instance_identifier(id);
    let with_snapshot = delete("reader").final_db_snapshot_identifier("a");
    assert_eq!(
        outcome(with_snapshot.send().await),
        "InvalidParameterCombination"
    );
    let promote = |id: &str| client.promote_read_replica().db_instance_identifier(id);
    assert_eq!(outcome(replica("second", "orders").await), "");
    let early = promote("second").send().await;
    assert_eq!(outcome(early), "InvalidDBInstanceState", "creating");
    settle(&simulator);
    let beyond = promote("second").backup_retention_period(36).send().await;
    assert_eq!(outcome(beyond), "InvalidParameterValue");
    let promotion = promote("second").backup_retention_period(3).send().await;
    assert_eq!(outcome(promotion), "");
    settle(&simulator);
    let second = describe(&client, "second").await.expect("the instance");
    assert_eq!(second.read_replica_source_db_instance_identifier(), None);
    assert_eq!(second.backup_retention_period(), Some(3));
    assert!(second.latest_restorable_time().is_some());
    for (expected, id) in [
        ("DBInstanceNotFound", "none"),
        ("InvalidDBInstanceState", "second"),
    ] {
        assert_eq!(outcome(promote(id).send().await), expected);
    }
    let deletion = delete("orders").skip_final_snapshot(true).send().await;
    assert_eq!(outcome(deletion), "");
    settle(&simulator);
    let reader = describe(&client, "reader").await.expect("the replica");
    assert_eq!(reader.read_replica_source_db_instance_identifier(), None);
    // It is an instance of its own now.
    let with_snapshot = delete("reader").final_db_snapshot_identifier("a");
    assert_eq!(outcome(with_snapshot.send().await), "");
}
