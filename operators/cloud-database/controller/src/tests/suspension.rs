//! Observation of the instances of invalid objects.

use std::time::Duration;

use lockstep_controller::ReconcileOutput;
use rds_simulator::{Disturbance, End};
use serde_json::json;

use crate::tests::environment::Environment;

/// Returns whether the object is ready, and the reason. Without a statement, the condition does not change.
fn readiness(output: &ReconcileOutput) -> Option<(bool, &'static str)> {
    let synced = &output.conditions[0];
    let found = (synced.type_, synced.is_true, synced.reason);
    assert_eq!(found, ("Synced", false, "Suspended"));
    let readiness = output.readiness.as_ref()?;
    Some((readiness.ready, readiness.reason))
}

/// Returns an object with an instance, which has become invalid.
async fn invalid(env: &Environment) -> String {
    let id = env.create("orders", &json!({})).await;
    env.edit("orders", |object| {
        object["spec"]["storage"] = json!("no object");
        object["spec"]["instanceClass"] = json!(7);
    });
    env.rds.clear_journal();
    id
}

async fn observed(env: &Environment) -> Option<(bool, &'static str)> {
    let output = env.observe_suspended("orders").await;
    readiness(&output.expect("an instance that RDS has listed"))
}

#[tokio::test]
async fn the_instance_of_an_invalid_object_is_observed_and_not_changed() {
    let env = Environment::start().await;
    let id = invalid(&env).await;
    assert_eq!(observed(&env).await, Some((true, "Available")));
    env.rds.force_status(&id, "rebooting", End::Released);
    assert_eq!(observed(&env).await, Some((false, "InProgress")));
    assert_eq!(env.object("orders")["status"]["phase"], "rebooting");
    env.rds.force_status(&id, "storage-full", End::Released);
    assert_eq!(observed(&env).await, Some((false, "StorageFull")));
    env.rds.release(&id);
    env.rds.set_tags(&id, &[("lockstep.dev/uid", "another")]);
    assert_eq!(observed(&env).await, Some((false, "InstanceNotOwned")));
    assert!(env.rds.writes().is_empty(), "{:?}", env.rds.writes());
}

#[tokio::test]
async fn answers_that_say_nothing_about_the_instance_of_an_invalid_object_leave_it_as_it_is() {
    let mut env = Environment::start().await;
    env.set(|shared| shared.config.not_found_grace_period = Duration::from_hours(1));
    let id = invalid(&env).await;
    for disturbance in [Disturbance::EmptyList, Disturbance::throttling()] {
        env.rds.inject("DescribeDBInstances", disturbance, 1);
        assert_eq!(observed(&env).await, None);
        env.rds.clear_injections();
        assert_eq!(observed(&env).await, Some((true, "Available")));
    }
    env.rds.remove_instance(&id);
    assert_eq!(observed(&env).await, None, "it has just disappeared");
}

#[tokio::test]
async fn an_outage_of_rds_leaves_the_state_of_an_invalid_object_for_a_limited_time() {
    for (grace_period, expected) in [
        (Duration::from_hours(1), None),
        (Duration::ZERO, Some((false, "RdsCallFailed"))),
    ] {
        let mut env = Environment::start().await;
        env.set(|shared| shared.config.unavailable_grace_period = grace_period);
        invalid(&env).await;
        let failure = Disturbance::internal_failure();
        env.rds.inject("DescribeDBInstances", failure, 9);
        assert_eq!(observed(&env).await, expected);
    }
}

#[tokio::test]
async fn an_invalid_object_without_an_instance_is_not_ready() {
    let env = Environment::start().await;
    env.store("orders", &json!({}));
    assert_eq!(env.observe_suspended("orders").await, None);
}
