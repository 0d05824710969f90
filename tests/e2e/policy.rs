//! The policy is reloaded at run time, and an object that a policy admitted stays valid.

use kube::api::{DynamicObject, PostParams};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, database};

/// Object that violates `overlapping-windows` and no other rule.
fn invalid(name: &str) -> Value {
    let mut object = database(name);
    object["spec"]["backup"] = json!({"window": "04:30-05:30"});
    object["spec"]["maintenanceWindow"] = json!("sun:05:00-sun:06:00");
    object
}

/// Returns true if the API server, with the webhook, would store an invalid object.
async fn is_let_pass(env: &TestEnv) -> bool {
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let object: DynamicObject = serde_json::from_value(invalid("probe")).expect("an object");
    match env.databases().create(&params, &object).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 422 => false,
        Err(error) => panic!("{error:?}"),
    }
}

async fn becomes(env: &TestEnv, what: &str, is_so: impl AsyncFn() -> bool) {
    let reached = eventually(what, async || is_so().await.then_some(()));
    reached
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_is_reloaded_while_the_webhook_runs_and_an_invalid_one_is_ignored() {
    let env = TestEnv::start().await;
    let set = |policy: &str| env.installation.set_policy(policy).expect("a policy");
    assert!(!is_let_pass(&env).await);

    set("rules: {CloudDatabase: {overlapping-windows: audit}}");
    becomes(&env, "the reload of the policy", async || {
        is_let_pass(&env).await
    })
    .await;

    set("rules: {CloudDatabase: {overlapping-windows: ignore}}");
    let url = env.installation.webhook_health_url();
    becomes(&env, "the report of the invalid policy", async || {
        let metrics = env.metrics(&url).await;
        metrics.contains("lockstep_policy_valid 0\n")
    })
    .await;
    assert!(
        is_let_pass(&env).await,
        "the last valid policy stays in force"
    );

    env.installation
        .remove_policy()
        .expect("the policy is removed");
    becomes(&env, "the renewed enforcement of the rule", async || {
        !is_let_pass(&env).await
    })
    .await;
    let metrics = env.metrics(&url).await;
    assert!(metrics.contains("lockstep_policy_valid 1\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_a_policy_admitted_stays_valid_when_the_rule_is_enforced() {
    let env = TestEnv::start().await;
    let warns = "rules: {CloudDatabase: {overlapping-windows: warn}}";
    env.installation.set_policy(warns).expect("a policy");
    becomes(&env, "the reload of the policy", async || {
        is_let_pass(&env).await
    })
    .await;
    let mut orders = invalid("orders");
    // A policy can deny violations of a rule that by default only warns.
    orders["spec"]["storage"] = json!({"sizeGib": 100, "maxSizeGib": 115});
    env.kubectl_apply(&orders).expect("stored");
    env.condition("orders", "Valid", "True").await;
    let url = env.installation.controller_health_url();
    let gauge_is = async |count: usize| {
        let end = format!(" {count}");
        let metrics = env.metrics(&url).await;
        metrics.lines().any(|line| {
            line.starts_with("lockstep_rule_violating_objects{")
                && line.contains("rule=\"overlapping-windows\"")
                && line.ends_with(&end)
        })
    };
    becomes(&env, "the count of one violating object", async || {
        gauge_is(1).await
    })
    .await;

    // From here on the rule is enforced, and only by the controller.
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    let denies = "rules: {CloudDatabase: {overlapping-windows: deny, autoscaling-headroom: deny}}";
    env.installation.set_policy(denies).expect("a policy");
    becomes(
        &env,
        "the reload of the policy in the controller",
        async || {
            let metrics = env.metrics(&url).await;
            metrics.contains("lockstep_policy_rules 2\n")
        },
    )
    .await;
    env.kubectl_apply(&invalid("other"))
        .expect("the object is stored without the webhook");
    env.condition("other", "Valid", "False").await;
    becomes(&env, "the count of two violating objects", async || {
        gauge_is(2).await
    })
    .await;
    // The object was never valid, so that no finalizer delays its deletion.
    env.kubectl(&["delete", "clouddatabase", "other"])
        .expect("the object is deleted");
    becomes(
        &env,
        "the count of one violating object again",
        async || gauge_is(1).await,
    )
    .await;

    // An edit of a field that the rule does not read.
    orders["spec"]["multiAz"] = json!(true);
    env.kubectl_apply(&orders).expect("stored");
    env.condition("orders", "Valid", "True").await;

    // An edit of a field that the rule reads: the violation is no longer the old one.
    orders["spec"]["backup"]["window"] = json!("05:00-05:30");
    env.kubectl_apply(&orders).expect("stored");
    let condition = env.condition("orders", "Valid", "False").await;
    assert!(
        condition.message.contains("[overlapping-windows]"),
        "{}",
        condition.message
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_has_no_more_databases_than_its_quota_and_names_what_the_policy_lists() {
    let options = EnvOptions {
        controller_args: vec!["--rds-resync-period=1h".to_owned()],
        ..EnvOptions::default()
    };
    let (env, rds) = TestEnv::start_on_simulator_with(options).await;
    let section = "{quota: {instances: 1}, allowed: {instanceClasses: [db.t4g.*]}}";
    let policy = format!("settings: {{cloudDatabase: {{namespaces: {{default: {section}}}}}}}");
    env.installation.set_policy(&policy).expect("a policy");
    let mut large = database("large");
    large["spec"]["instanceClass"] = json!("db.m7g.large");
    becomes(&env, "a class that the policy does not list", async || {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object = serde_json::from_value(large.clone()).expect("an object");
        let denied = env.databases().create(&params, &object).await.err();
        denied.is_some_and(|error| error.to_string().contains("[not-allowed-in-namespace]"))
    })
    .await;
    for name in ["orders", "billing"] {
        let mut object = database(name);
        object["spec"]["deletionPolicy"] = json!("Delete");
        env.kubectl_apply(&object)
            .unwrap_or_else(|error| env.fail(&error));
        if name == "orders" {
            env.condition(name, "Ready", "True").await;
        }
    }
    env.condition_because("billing", "Stalled", "QuotaExceeded")
        .await;
    assert_eq!(rds.instance_ids().len(), 1);
    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("billing", "Ready", "True").await;
}
