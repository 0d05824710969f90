//! `RebootDBInstance`, `StopDBInstance` and `StartDBInstance`.

use std::time::Duration;

use rds_simulator::End;

use crate::client::{available, creation, describe, outcome, settle, start, status};

#[tokio::test]
async fn a_stopped_instance_starts_on_request_and_after_seven_days() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let stop = || client.stop_db_instance().db_instance_identifier("orders");
    let start = || client.start_db_instance().db_instance_identifier("orders");
    assert_eq!(outcome(start().send().await), "InvalidDBInstanceState");
    for is_requested in [true, false] {
        stop().send().await.expect("an answer");
        settle(&simulator);
        let instance = describe(&client, "orders").await.expect("the instance");
        assert_eq!(instance.db_instance_status(), Some("stopped"));
        assert!(instance.automatic_restart_time().is_some());
        assert_eq!(outcome(stop().send().await), "InvalidDBInstanceState");
        if is_requested {
            let answer = start().send().await.expect("an answer");
            let status = answer.db_instance().and_then(|it| it.db_instance_status());
            assert_eq!(status, Some("starting"));
        } else {
            simulator.advance(Duration::from_hours(7 * 24));
        }
        settle(&simulator);
        assert_eq!(status(&client, "orders").await, "available");
    }
    let snapshot = stop().db_snapshot_identifier("before").send().await;
    assert_eq!(outcome(snapshot), "");
    settle(&simulator);
    assert_eq!(outcome(start().send().await), "");
    settle(&simulator);
    let again = stop().db_snapshot_identifier("before").send().await;
    assert_eq!(outcome(again), "DBSnapshotAlreadyExists");
}

#[tokio::test]
async fn a_start_needs_capacity_and_the_key() {
    let (simulator, client) = start().await;
    let key = simulator.add_kms_key("alias/databases");
    let request = creation(&client, "orders").storage_encrypted(true);
    let request = request.kms_key_id("alias/databases").send().await;
    let created = request.expect("an instance");
    let created = created.db_instance().expect("an instance");
    assert_eq!(created.kms_key_id(), Some(key.as_str()));
    settle(&simulator);
    let start = || client.start_db_instance().db_instance_identifier("orders");
    let state = "inaccessible-encryption-credentials-recoverable";
    simulator.force_status("orders", state, End::Released);
    simulator.remove_kms_key("alias/databases");
    assert_eq!(outcome(start().send().await), "KMSKeyNotAccessibleFault");
    assert_eq!(status(&client, "orders").await, state);
    simulator.add_kms_key("alias/databases");
    simulator.set_capacity("db.t4g.micro", false);
    assert_eq!(
        outcome(start().send().await),
        "InsufficientDBInstanceCapacity"
    );
    simulator.set_capacity("db.t4g.micro", true);
    assert_eq!(outcome(start().send().await), "");
    settle(&simulator);
    assert_eq!(status(&client, "orders").await, "available");
}

#[tokio::test]
async fn a_reboot_applies_the_parameter_group() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.add_parameter_group("tuned", "postgres16");
    let modification = client.modify_db_instance().db_instance_identifier("orders");
    let modification = modification.db_parameter_group_name("tuned");
    modification.send().await.expect("an answer");
    let group = async || {
        let instance = describe(&client, "orders").await.expect("the instance");
        let group = &instance.db_parameter_groups()[0];
        assert_eq!(group.db_parameter_group_name(), Some("tuned"));
        group.parameter_apply_status().map(String::from)
    };
    assert_eq!(group().await.as_deref(), Some("pending-reboot"));
    let reboot = || client.reboot_db_instance().db_instance_identifier("orders");
    let forced = reboot().force_failover(true).send().await;
    assert_eq!(outcome(forced), "InvalidParameterCombination");
    let answer = reboot().send().await.expect("an answer");
    let status = answer.db_instance().and_then(|it| it.db_instance_status());
    assert_eq!(status, Some("rebooting"));
    assert_eq!(outcome(reboot().send().await), "InvalidDBInstanceState");
    settle(&simulator);
    assert_eq!(group().await.as_deref(), Some("in-sync"));
    // Another class restarts the database, too.
    let modification = || client.modify_db_instance().db_instance_identifier("orders");
    simulator.add_parameter_group("other", "postgres16");
    for group in ["other", "tuned"] {
        let modification = modification().db_parameter_group_name(group);
        modification.send().await.expect("an answer");
    }
    assert_eq!(group().await.as_deref(), Some("pending-reboot"));
    let larger = modification().db_instance_class("db.t4g.small");
    larger
        .apply_immediately(true)
        .send()
        .await
        .expect("an answer");
    settle(&simulator);
    assert_eq!(group().await.as_deref(), Some("in-sync"));
}
