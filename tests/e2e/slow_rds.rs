//! RDS takes time to create and to delete an instance, and the object waits for it.

use std::time::Duration;

use lockstep_envtest::eventually;
use rds_simulator::{End, Outcome};

use crate::env::{TestEnv, database};

#[tokio::test(flavor = "multi_thread")]
async fn an_object_waits_until_its_instance_is_created_and_until_it_is_deleted() {
    let (env, simulator) = TestEnv::start_on_simulator().await;
    simulator.set_timing(|timing| timing.state = Duration::from_hours(1));
    let calls_again = async |times: usize| {
        let calls = || simulator.calls("DescribeDBInstances").len();
        let before = calls();
        let again = eventually("another request to RDS", async || {
            (calls() >= before + times).then_some(())
        });
        again
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
    };

    env.kubectl_apply(&database("orders")).expect("stored");
    let reported = eventually("the report of the RDS state", async || {
        let ready = env.condition("orders", "Ready", "False").await;
        (ready.message == "RDS reports the instance as 'creating'").then_some(())
    });
    reported
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    calls_again(3).await;
    env.condition("orders", "Ready", "False").await;
    let created = [("CreateDBInstance".to_owned(), Outcome::Succeeded)];
    assert_eq!(simulator.writes(), created);

    // An unknown state counts as temporary; a state in which the instance serves clients counts as ready.
    let id = simulator.instance_ids().remove(0);
    simulator.force_status(&id, "rebooting-for-an-unknown-reason", End::Released);
    calls_again(2).await;
    env.condition("orders", "Ready", "False").await;
    simulator.release(&id);
    simulator.advance(Duration::from_hours(1));
    env.condition("orders", "Ready", "True").await;
    let instance = simulator.instance(&id).expect("the instance");
    assert_eq!(instance["DBInstanceStatus"], "backing-up");

    env.kubectl(&["delete", "cdb/orders", "--wait=false"])
        .expect("deletion begins");
    let begins = eventually("the deletion of the instance", async || {
        let instance = simulator.instance(&id)?;
        (instance["DBInstanceStatus"] == "deleting").then_some(())
    });
    begins
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    calls_again(3).await;
    assert!(
        env.has_database("orders").await,
        "the object was removed before its instance"
    );
    simulator.advance(Duration::from_hours(1));
    env.kubectl(&["wait", "--for=delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|e| env.fail(&e));
    assert_eq!(env.instances().await.len(), 0);
    let succeeded = |operation: &str| (operation.to_owned(), Outcome::Succeeded);
    assert_eq!(
        simulator.writes(),
        ["CreateDBInstance", "DeleteDBInstance"].map(succeeded)
    );
}
