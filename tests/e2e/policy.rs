//! A policy is read while everything runs, and what it let pass stays accepted.

use control_plane::eventually;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::world::{World, database};

/// Breaks `windows-disjoint`, and nothing else.
fn invalid(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["backup"] = json!({"window": "04:30-05:30"});
    object["spec"]["maintenanceWindow"] = json!("sun:05:00-sun:06:00");
    object
}

/// Whether the API server, with the gate, would store an invalid object.
async fn is_let_pass(world: &World) -> bool {
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let object: DynamicObject = serde_json::from_value(invalid("probe")).expect("an object");
    match world.databases().create(&params, &object).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 422 => false,
        Err(error) => panic!("{error:?}"),
    }
}

async fn becomes(world: &World, what: &str, is_so: impl AsyncFn() -> bool) {
    let seen = eventually(what, async || is_so().await.then_some(()));
    seen.await
        .unwrap_or_else(|error| world.fail(&error.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_taken_while_the_gate_runs_and_a_wrong_one_changes_nothing() {
    let world = World::start().await;
    let set = |policy: &str| world.installation.set_policy(policy).expect("a policy");
    assert!(!is_let_pass(&world).await);

    set("rules: {CloudDatabase: {windows-disjoint: audit}}");
    becomes(&world, "the policy in force", async || {
        is_let_pass(&world).await
    })
    .await;

    set("rules: {CloudDatabase: {windows-disjoint: ignore}}");
    let url = world.installation.webhook_health_url();
    becomes(&world, "the wrong policy being told", async || {
        let metrics = world.metrics(&url).await;
        metrics.contains("lockstep_policy_valid 0\n")
    })
    .await;
    assert!(is_let_pass(&world).await, "the last good policy stays");

    world.installation.remove_policy().expect("it goes");
    becomes(&world, "the rule being enforced again", async || {
        !is_let_pass(&world).await
    })
    .await;
    let metrics = world.metrics(&url).await;
    assert!(metrics.contains("lockstep_policy_valid 1\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_let_pass_is_not_frozen_when_the_rule_is_enforced() {
    let world = World::start().await;
    let warns = "rules: {CloudDatabase: {windows-disjoint: warn}}";
    world.installation.set_policy(warns).expect("a policy");
    becomes(&world, "the policy in force", async || {
        is_let_pass(&world).await
    })
    .await;
    let mut orders = invalid("orders");
    // What a rule only advises by itself, a policy may demand.
    orders["spec"]["storage"] = json!({"sizeGib": 100, "maxSizeGib": 115});
    world.kubectl_apply(&orders).expect("stored");
    world.condition("orders", "Valid", "True").await;
    let url = world.installation.controller_health_url();
    let gauge_is = async |count: usize| {
        let end = format!(" {count}");
        let metrics = world.metrics(&url).await;
        metrics.lines().any(|line| {
            line.starts_with("lockstep_rule_broken_objects{")
                && line.contains("rule=\"windows-disjoint\"")
                && line.ends_with(&end)
        })
    };
    becomes(&world, "one object that breaks the rule", async || {
        gauge_is(1).await
    })
    .await;

    // From now on the rule is enforced, and only the loop is there to do it.
    world
        .installation
        .remove_gate(&world.cluster)
        .expect("the configurations go");
    let denies = "rules: {CloudDatabase: {windows-disjoint: deny, autoscaling-headroom: deny}}";
    world.installation.set_policy(denies).expect("a policy");
    becomes(&world, "the rules being enforced in the loop", async || {
        let metrics = world.metrics(&url).await;
        metrics.contains("lockstep_policy_rules 2\n")
    })
    .await;
    world
        .kubectl_apply(&invalid("other"))
        .expect("nobody refuses it");
    world.condition("other", "Valid", "False").await;
    becomes(&world, "two objects that break the rule", async || {
        gauge_is(2).await
    })
    .await;
    // It was never valid, so that nothing holds it up: it is gone at once.
    world
        .kubectl(&["delete", "clouddatabase", "other"])
        .expect("it goes");
    becomes(
        &world,
        "one object that breaks the rule again",
        async || gauge_is(1).await,
    )
    .await;

    // An edit that the rule does not read.
    orders["spec"]["multiAz"] = json!(true);
    world.kubectl_apply(&orders).expect("stored");
    world.condition("orders", "Valid", "True").await;

    // One that it reads: the same error is another one now.
    orders["spec"]["backup"]["window"] = json!("05:00-05:30");
    world.kubectl_apply(&orders).expect("stored");
    let condition = world.condition("orders", "Valid", "False").await;
    assert!(
        condition.message.contains("[windows-disjoint]"),
        "{}",
        condition.message
    );
}
