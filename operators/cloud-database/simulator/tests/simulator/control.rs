//! Control of instances by a test.

use std::time::Duration;

use rds_simulator::{End, Simulator};
use serde_json::json;

use crate::client::{available, creation, describe, outcome, settle, start, status};

#[tokio::test]
async fn an_instance_has_the_state_that_a_test_sets_until_it_ends() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.force_status("orders", "an-unknown-state", End::Released);
    simulator.advance(Duration::from_hours(1));
    assert_eq!(status(&client, "orders").await, "an-unknown-state");
    simulator.release("orders");
    assert_eq!(status(&client, "orders").await, "available");
    let end = End::After(Duration::from_mins(5));
    simulator.force_status("orders", "maintenance", end);
    simulator.advance(Duration::from_mins(4));
    assert_eq!(status(&client, "orders").await, "maintenance");
    simulator.advance(Duration::from_mins(1));
    assert_eq!(status(&client, "orders").await, "available");
    let end = End::Call("ModifyDBInstance".to_owned());
    simulator.force_status("orders", "incompatible-option-group", end);
    settle(&simulator);
    assert_eq!(status(&client, "orders").await, "incompatible-option-group");
    let modification = client.modify_db_instance().db_instance_identifier("orders");
    let modification = modification.publicly_accessible(false);
    modification
        .send()
        .await
        .expect("the modification that ends the state");
    settle(&simulator);
    assert_eq!(status(&client, "orders").await, "available");
}

#[tokio::test]
async fn a_state_during_the_creation_does_not_end_it() {
    let (simulator, client) = start().await;
    creation(&client, "orders")
        .send()
        .await
        .expect("an instance");
    let end = End::After(Duration::from_mins(5));
    simulator.force_status("orders", "insufficient-capacity", end);
    assert_eq!(status(&client, "orders").await, "insufficient-capacity");
    simulator.advance(Duration::from_mins(5));
    assert_eq!(status(&client, "orders").await, "creating");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_status(), Some("available"));
    assert!(instance.endpoint().is_some());
}

#[tokio::test]
async fn an_instance_can_be_changed_behind_the_back_of_its_clients() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.change(
        "orders",
        json!({"DBInstanceClass": "db.r6g.large", "Port": 5433}),
    );
    simulator.set_tags("orders", &[("team", "billing")]);
    simulator.report("orders", json!({"DBSystemId": "system"}));
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_class(), Some("db.r6g.large"));
    assert_eq!(instance.endpoint().and_then(|it| it.port()), Some(5433));
    assert_eq!(instance.tag_list()[0].value(), Some("billing"));
    assert_eq!(instance.db_system_id(), Some("system"));
    simulator.remove_instance("orders");
    assert_eq!(status(&client, "orders").await, "DBInstanceNotFound");
    assert!(simulator.instance("orders").is_none());
}

#[tokio::test]
async fn rds_grows_a_storage_automatically() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.autoscale("orders", 150);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_status(), Some("storage-optimization"));
    assert_eq!(instance.allocated_storage(), Some(150));
    settle(&simulator);
    let grow = client.modify_db_instance().db_instance_identifier("orders");
    let grow = grow.allocated_storage(200).send().await;
    assert_eq!(outcome(grow), "InvalidParameterCombination");
}

#[tokio::test]
async fn a_test_opens_the_maintenance_window() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let class = client.modify_db_instance().db_instance_identifier("orders");
    let class = class.db_instance_class("db.m6g.large");
    class.send().await.expect("an answer");
    simulator.open_maintenance_window("orders");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_class(), Some("db.m6g.large"));
}

#[tokio::test]
async fn real_time_ends_states_without_the_help_of_a_test() {
    let simulator = Simulator::start().await.expect("a simulator");
    let client = crate::client::client(&simulator).await;
    creation(&client, "orders")
        .send()
        .await
        .expect("an instance");
    let is_available = lockstep_envtest::eventually("an available instance", async || {
        (status(&client, "orders").await == "available").then_some(())
    });
    is_available.await.expect("an available instance");
    // An hour passes in the blink of an eye.
    simulator.set_timing(|timing| timing.state = Duration::from_hours(1));
    let deletion = client.delete_db_instance().db_instance_identifier("orders");
    let deletion = deletion.skip_final_snapshot(true).send().await;
    assert_eq!(outcome(deletion), "");
    simulator.set_speed(1_000_000.0);
    let is_gone = lockstep_envtest::eventually("the end of the instance", async || {
        (status(&client, "orders").await == "DBInstanceNotFound").then_some(())
    });
    is_gone.await.expect("no instance");
}
