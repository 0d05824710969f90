//! First creations of objects whose status was erased, and of whose instances RDS has data.

use std::time::Duration;

use lockstep_controller::ReconcileOutput;
use rds_simulator::Disturbance;
use serde_json::json;

use crate::aws::recent::tests::config_at;
use crate::tests::environment::{Environment, Told};

/// Deletes an instance as an administrator does who keeps its data, and returns its resource ID.
async fn delete(env: &Environment, id: &str, snapshot: Option<&str>) -> String {
    let instance = env.rds.instance(id).expect("the instance");
    let client = aws_sdk_rds::Client::new(&config_at(&env.rds.endpoint()).await);
    let call = client
        .delete_db_instance()
        .db_instance_identifier(id)
        .skip_final_snapshot(snapshot.is_none())
        .set_final_db_snapshot_identifier(snapshot.map(str::to_owned))
        .delete_automated_backups(snapshot.is_some());
    call.send().await.expect("the deletion");
    env.rds.advance(Duration::from_hours(1));
    assert!(env.rds.instance(id).is_none(), "{id} is deleted");
    env.rds.clear_journal();
    let resource_id = instance["DbiResourceId"].as_str();
    resource_id.expect("a resource ID").to_owned()
}

fn erase(env: &Environment) {
    env.edit("orders", |object| object["status"] = json!({}));
}

/// Returns the reasons of the Events of a reconciliation.
fn reasons(output: &ReconcileOutput) -> Vec<&'static str> {
    output.events.iter().map(|event| event.reason).collect()
}

#[tokio::test]
async fn no_empty_instance_takes_the_place_of_one_of_which_rds_has_data() {
    for snapshot in [Some("before-the-accident"), None] {
        let env = Environment::start().await;
        let id = env.create("orders", &json!({})).await;
        let resource_id = delete(&env, &id, snapshot).await;
        erase(&env);
        for _ in 0..3 {
            let output = env.reconcile("orders").await;
            let error = output.error.as_ref().expect("an error").to_string();
            assert_eq!(Told::of(&output).reason, "InstanceMissing");
            let what = snapshot.map_or("retained automated backups", |name| name);
            assert!(error.contains(what), "{error}");
            assert!(error.contains(&format!("={resource_id}")), "{error}");
        }
        assert!(env.rds.writes().is_empty(), "{:?}", env.rds.writes());
        env.edit("orders", |object| {
            let annotations = json!({"database.example.com/replaces-instance": resource_id});
            object["metadata"]["annotations"] = annotations;
        });
        env.reconcile_repeatedly("orders").await;
        assert!(env.rds.instance(&id).is_some(), "a new database is meant");
    }
}

/// Otherwise, one wrong answer would take the place of a database.
#[tokio::test]
async fn one_empty_list_does_not_hide_the_data_of_an_instance() {
    for (operation, snapshot) in [
        ("DescribeDBSnapshots", Some("before-the-accident")),
        ("DescribeDBInstanceAutomatedBackups", None),
    ] {
        let env = Environment::start().await;
        let id = env.create("orders", &json!({})).await;
        delete(&env, &id, snapshot).await;
        erase(&env);
        env.rds.inject(operation, Disturbance::EmptyList, 1);
        let output = env.reconcile("orders").await;
        assert_eq!(Told::of(&output).reason, "InstanceMissing", "{operation}");
    }
}

#[tokio::test]
async fn data_of_an_earlier_object_of_the_name_is_told_and_delays_nothing() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    delete(&env, &id, Some("kept")).await;
    env.edit("orders", |object| {
        object["metadata"]["uid"] = json!("orders-2");
    });
    erase(&env);
    let output = env.reconcile("orders").await;
    assert_eq!(reasons(&output), ["DataOfEarlierObject"]);
    assert!(output.events[0].note.contains("'kept'"), "{output:?}");
    env.reconcile_repeatedly("orders").await;
    assert!(env.rds.instance("cdb-orders-2").is_some());
}

#[tokio::test]
async fn data_that_the_controller_may_not_read_is_told_and_delays_nothing() {
    for operation in ["DescribeDBSnapshots", "DescribeDBInstanceAutomatedBackups"] {
        let env = Environment::start().await;
        env.store("orders", &json!({}));
        erase(&env);
        let denied = Disturbance::Error("AccessDenied".to_owned(), "not authorized".to_owned());
        env.rds.inject(operation, denied, 2);
        let output = env.reconcile("orders").await;
        assert_eq!(reasons(&output), ["EarlierDataUnreadable"], "{operation}");
        env.reconcile("orders").await;
        assert_eq!(env.calls("CreateDBInstance").len(), 1);
    }
}

#[tokio::test]
async fn without_an_answer_about_earlier_data_nothing_is_created() {
    let env = Environment::start().await;
    env.store("orders", &json!({}));
    erase(&env);
    env.rds
        .inject("DescribeDBSnapshots", Disturbance::internal_failure(), 9);
    let output = env.reconcile("orders").await;
    assert_eq!(Told::of(&output).reason, "RdsCallFailed");
    assert!(env.rds.writes().is_empty());
}

#[tokio::test]
async fn an_object_with_a_complete_status_costs_no_call_for_earlier_data() {
    let env = Environment::start().await;
    env.create("orders", &json!({})).await;
    for operation in ["DescribeDBSnapshots", "DescribeDBInstanceAutomatedBackups"] {
        assert!(env.rds.calls(operation).is_empty(), "{operation}");
    }
}
