//! The controller is killed at each of its steps: every object gets one instance, and none is left after deletion.

use kube::api::{DeleteParams, PostParams};
use lockstep_envtest::{Cluster, Moto, eventually};

use std::time::Duration;

use tokio::sync::oneshot;

use crate::env::{EnvOptions, TestEnv, condition, database};
use crate::proxy::{Proxy, Step, Trap, Triggered, When};

async fn environment(grace_period: &str) -> (TestEnv, Trap) {
    let trap = Trap::default();
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let options = EnvOptions {
        aws_endpoint: Some(Proxy::before_aws_with(&moto, trap.clone()).await.url()),
        // No call to RDS comes in between that is not part of the steps.
        controller_args: vec![
            "--rds-resync-period=10m".to_owned(),
            format!("--rds-not-found-grace-period={grace_period}"),
        ],
        controller_server: Some(
            Proxy::before_apiserver_with(&cluster, trap.clone())
                .await
                .url(),
        ),
        ..EnvOptions::default()
    };
    (TestEnv::install(cluster, moto, options).await, trap)
}

async fn create(env: &TestEnv, name: &str) {
    create_with(env, name, "Delete").await;
}

async fn create_with(env: &TestEnv, name: &str, policy: &str) {
    let mut object = database(name);
    object["spec"]["deletionPolicy"] = policy.into();
    let object = serde_json::from_value(object).expect("an object");
    env.databases()
        .create(&PostParams::default(), &object)
        .await
        .expect("stored");
}

async fn ready(env: &TestEnv, name: &str) {
    let databases = env.databases();
    let ready = eventually("the readiness of the database", async || {
        condition(&databases.get(name).await.ok()?, "Ready").filter(|ready| ready.status == "True")
    });
    ready
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

async fn delete(env: &TestEnv, name: &str) {
    env.databases()
        .delete(name, &DeleteParams::default())
        .await
        .expect("deletion begins");
}

async fn gone(env: &TestEnv, name: &str) {
    let databases = env.databases();
    let gone = eventually("the deletion of the object", async || {
        databases.get_opt(name).await.ok()?.is_none().then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

/// Calls of one undisturbed life cycle: up to ready, and from the deletion to the removal of the object.
async fn steps(env: &TestEnv, trap: &Trap) -> (Vec<Step>, Vec<Step>) {
    steps_with(env, trap, "Delete").await
}

async fn steps_with(env: &TestEnv, trap: &Trap, policy: &str) -> (Vec<Step>, Vec<Step>) {
    trap.clear();
    create_with(env, "undisturbed", policy).await;
    ready(env, "undisturbed").await;
    let creating = trap.steps();
    trap.clear();
    delete(env, "undisturbed").await;
    gone(env, "undisturbed").await;
    (creating, trap.steps())
}

fn has(steps: &[Step], name: &str) -> bool {
    steps.iter().any(|step| step.call == name)
}

/// Returns true if RDS was queried again between the deletion of the instance and the last write to the object, which
/// removes the finalizer.
fn is_confirmed_before_it_ends(deleting: &[Step]) -> bool {
    let last = |name: &str| deleting.iter().rposition(|step| step.call == name);
    let (deleted, confirmed) = (last("DeleteDBInstance"), last("DescribeDBInstances"));
    deleted < confirmed && confirmed < last("PATCH clouddatabases")
}

/// Waits until the trap is triggered.
async fn triggered_at(step: &Step, triggered: &mut Triggered) -> oneshot::Sender<()> {
    let reached = tokio::time::timeout(Duration::from_secs(30), triggered.recv()).await;
    reached
        .ok()
        .flatten()
        .unwrap_or_else(|| panic!("{step:?} was never reached"))
}

/// Waits until the trap is triggered, kills the controller at that step, and starts another one.
async fn kill_in_trap(env: &mut TestEnv, step: &Step, mut triggered: Triggered, trap: &Trap) {
    let release = triggered_at(step, &mut triggered).await;
    env.installation.controller().kill();
    trap.clear();
    let _ = release.send(());
    env.installation
        .start_controller()
        .expect("a new controller");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_at_any_step_of_a_creation_leaves_one_instance_and_then_none() {
    let (mut env, trap) = environment("200ms").await;
    let (creating, _) = steps(&env, &trap).await;
    assert!(
        has(&creating, "CreateDBInstance") && has(&creating, "PATCH clouddatabases"),
        "{creating:?}"
    );
    println!("steps of a creation: {creating:?}");

    for (i, step) in creating.iter().enumerate() {
        for when in [When::Before, When::After] {
            let name = format!("create-{i}-{}", format!("{when:?}").to_lowercase());
            let triggered = trap.set(step, when);
            create(&env, &name).await;
            kill_in_trap(&mut env, step, triggered, &trap).await;
            ready(&env, &name).await;
            assert_eq!(
                env.instances().await.len(),
                1,
                "killed {when:?} {step:?} of a creation"
            );
            delete(&env, &name).await;
            gone(&env, &name).await;
            assert_eq!(
                env.instances().await.len(),
                0,
                "killed {when:?} {step:?} of a creation"
            );
        }
    }
}

/// Kills the controller at each step of a deletion by this policy, and calls `after_each` with the number of deleted
/// objects.
async fn deletion_survives(policy: &str, after_each: impl AsyncFn(&TestEnv, usize)) {
    let (mut env, trap) = environment("200ms").await;
    let (_, deleting) = steps_with(&env, &trap, policy).await;
    assert!(
        has(&deleting, "DeleteDBInstance") && has(&deleting, "PATCH clouddatabases"),
        "{deleting:?}"
    );
    assert!(is_confirmed_before_it_ends(&deleting), "{deleting:?}");
    println!("steps of a deletion by {policy}: {deleting:?}");
    let mut deleted = 1;
    for (i, step) in deleting.iter().enumerate() {
        for when in [When::Before, When::After] {
            let name = format!("delete-{i}-{}", format!("{when:?}").to_lowercase());
            trap.clear();
            create_with(&env, &name, policy).await;
            ready(&env, &name).await;
            let triggered = trap.set(step, when);
            delete(&env, &name).await;
            kill_in_trap(&mut env, step, triggered, &trap).await;
            gone(&env, &name).await;
            assert_eq!(
                env.instances().await.len(),
                0,
                "killed {when:?} {step:?} of a deletion"
            );
            deleted += 1;
            after_each(&env, deleted).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_at_any_step_of_a_deletion_leaves_no_instance() {
    deletion_survives("Delete", async |env, _| {
        assert_eq!(snapshots(env).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_at_any_step_of_a_deletion_leaves_a_snapshot_each() {
    deletion_survives("Snapshot", async |env, deleted| {
        assert_eq!(snapshots(env).await, deleted);
    })
    .await;
}

/// Number of snapshots in moto.
async fn snapshots(env: &TestEnv) -> usize {
    let found = env.rds.describe_db_snapshots().send().await;
    let found = found.expect("moto answers").db_snapshots;
    found.unwrap_or_default().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_whose_response_is_lost_creates_no_second_instance() {
    let (env, trap) = environment("200ms").await;
    let (creating, _) = steps(&env, &trap).await;
    assert!(has(&creating, "CreateDBInstance"), "{creating:?}");
    let step = Step {
        call: "CreateDBInstance".to_owned(),
        nth: 0,
    };
    let mut triggered = trap.set(&step, When::After);
    create(&env, "orders").await;
    // The controller keeps running, and its connection breaks.
    let _ = triggered_at(&step, &mut triggered).await.send(());
    ready(&env, "orders").await;
    assert_eq!(env.instances().await.len(), 1);
    let warnings = env.kubectl(&[
        "get",
        "events",
        "--field-selector=type=Warning",
        "-o",
        "name",
    ]);
    assert_eq!(
        warnings.as_deref(),
        Ok(""),
        "a lost response is no error: the controller finds the created instance"
    );
    let creations = trap
        .calls()
        .iter()
        .filter(|call| *call == "CreateDBInstance")
        .count();
    assert!(
        creations >= 2,
        "the response was not lost: {:?}",
        trap.calls()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_that_reaches_rds_after_the_deletion_has_started_leaves_no_orphan() {
    let (mut env, trap) = environment("10m").await;
    let step = Step {
        call: "CreateDBInstance".to_owned(),
        nth: 0,
    };
    let mut triggered = trap.set(&step, When::Late);
    create(&env, "orders").await;
    let land = triggered_at(&step, &mut triggered).await;
    env.installation.controller().kill();
    delete(&env, "orders").await;
    env.installation
        .start_controller()
        .expect("a new controller");
    // The controller has queried RDS more than once and found no instance; that is no proof yet.
    let calls = || {
        trap.calls()
            .iter()
            .filter(|call| *call == "DescribeDBInstances")
            .count()
    };
    let before = calls();
    let requested = eventually("further requests to RDS", async || {
        (calls() >= before + 3).then_some(())
    });
    requested
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(
        env.has_database("orders").await,
        "the controller took one query for proof that no instance exists"
    );

    land.send(()).expect("the creation is still pending");
    let is_deleted = eventually("the deletion of the late instance", async || {
        let is_requested = trap.calls().iter().any(|call| call == "DeleteDBInstance");
        (is_requested && env.instances().await.is_empty()).then_some(())
    });
    is_deleted
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    // moto deletes at once and never shows `deleting`, so that only the grace period proves the absence.
    assert!(env.has_database("orders").await, "one answer is no proof");
    env.installation
        .restart_controller_with_value("--rds-not-found-grace-period", "200ms")
        .expect("restarted");
    gone(&env, "orders").await;
    assert_eq!(env.instances().await.len(), 0, "an instance is orphaned");
}
