//! Modifications of an instance by its status.

use std::time::Duration;

use rds_simulator::End;
use serde_json::{Value, json};

use crate::instance::instance_status::STATUSES;
use crate::tests::environment::{Environment, Told};

/// Time after which RDS changes the storage again.
const LONGER_THAN_A_COOLDOWN: Duration = Duration::from_hours(10);

/// Returns the modifications that are requested in a status: of the storage, and of the class.
fn accepted(status: &str) -> (bool, bool) {
    match status {
        "available" => (true, true),
        "storage-full" => (true, false),
        "storage-optimization" => (false, true),
        _ => (false, false),
    }
}

#[tokio::test]
async fn an_instance_that_cannot_start_with_its_parameters_gets_the_group_of_the_spec() {
    let env = Environment::start().await;
    env.rds.add_parameter_group("corrected", "postgres16");
    let id = env.create("orders", &json!({})).await;
    env.rds
        .force_status(&id, "incompatible-parameters", End::Released);
    env.edit("orders", |object| {
        object["spec"]["parameterGroup"] = json!("corrected");
        object["spec"]["instanceClass"] = json!("db.m7g.large");
    });
    env.rds.clear_journal();
    let output = env.reconcile_recorded("orders").await;
    assert_eq!(Told::of(&output).reason, "IncompatibleParameters");
    let calls = env.calls("ModifyDBInstance");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["DBParameterGroupName"], "corrected");
    assert_eq!(calls[0]["DBInstanceClass"], Value::Null);
}

#[tokio::test]
async fn only_the_modifications_that_rds_accepts_in_a_status_are_requested() {
    let env = Environment::start().await;
    let names = STATUSES.iter().map(|(name, _)| *name);
    for (number, status) in names.chain(["of-a-later-release"]).enumerate() {
        let name = number.to_string();
        let id = env.create(&name, &json!({})).await;
        env.edit(&name, |object| {
            object["spec"]["instanceClass"] = json!("db.m7g.large");
            object["spec"]["storage"]["sizeGib"] = json!(40);
            object["spec"]["tags"] = json!({"team": "shop"});
        });
        env.rds.force_status(&id, status, End::Released);
        env.rds.clear_journal();
        let output = env.reconcile_recorded(&name).await;
        let tags = env.rds.calls("AddTagsToResource").len();
        assert_eq!(tags, 1, "{status}: tags do not depend on it");
        let calls = env.calls("ModifyDBInstance");
        let has = |parameter: &str| calls.iter().any(|it| it[parameter] != Value::Null);
        let found = (has("AllocatedStorage"), has("DBInstanceClass"));
        assert_eq!(found, accepted(status), "{status}: {calls:?}");
        let synced = &output.conditions[0];
        assert_eq!((synced.type_, synced.is_true), ("Synced", false));
        assert_eq!(env.object(&name)["status"]["phase"], status);
        // What was not requested is, once the status has passed.
        for _ in 0..10 {
            let instance = env.rds.instance(&id).expect("the instance");
            if instance["DBInstanceStatus"] == status {
                env.rds.release(&id);
            }
            env.rds.advance(LONGER_THAN_A_COOLDOWN);
            env.reconcile(&name).await;
        }
        let instance = env.rds.instance(&id).expect("the instance");
        let found = (&instance["DBInstanceClass"], &instance["AllocatedStorage"]);
        assert_eq!(found, (&json!("db.m7g.large"), &json!(40)), "{status}");
        env.rds.remove_instance(&id);
    }
}

#[tokio::test]
async fn what_waits_is_reported_with_the_maintenance_window() {
    let env = Environment::start().await;
    let window = "sun:05:00-sun:06:00";
    let fields = json!({"applyChanges": "MaintenanceWindow", "maintenanceWindow": window});
    let id = env.create("orders", &fields).await;
    let reported = || {
        let status = env.object("orders")["status"].clone();
        let of = |field: &str| status[field].clone();
        (of("pendingModifications"), of("pendingModificationsWindow"))
    };
    assert_eq!(reported(), (Value::Null, Value::Null));
    env.edit("orders", |object| {
        object["spec"]["instanceClass"] = json!("db.m7g.large");
    });
    env.reconcile_repeatedly("orders").await;
    assert_eq!(reported(), (json!(["instanceClass"]), json!(window)));
    env.rds.open_maintenance_window(&id);
    env.rds.advance(Duration::from_hours(1));
    env.reconcile_repeatedly("orders").await;
    assert_eq!(reported(), (Value::Null, Value::Null));
}
