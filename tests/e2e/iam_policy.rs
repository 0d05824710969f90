//! The IAM policy that users give to the controller allows what the controller needs. All tests on the simulator of RDS run
//! with it.

use std::collections::BTreeSet;

use lockstep_envtest::eventually;
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, database, iam_policy};

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_allows_no_action_that_is_not_needed() {
    let options = EnvOptions {
        controller_args: vec!["--rds-catalogue-refresh-interval=1h".to_owned()],
        ..EnvOptions::default()
    };
    let (env, rds) = TestEnv::start_on_simulator_with(options).await;
    let key = rds.add_kms_key("alias/orders");
    let policy = iam_policy(&[&format!("--kms-key={key}")]);
    rds.set_policy(Simulator::ACCESS_KEY, &policy);
    let mut object = database("orders");
    object["spec"]["deletionPolicy"] = json!("Snapshot");
    object["spec"]["backup"] = json!({"copyTagsToSnapshot": false});
    object["spec"]["encryption"] = json!({"kmsKey": key});
    object["spec"]["tags"] = json!({"team": "shop"});
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Ready", "True").await;
    object["spec"]["tags"] = json!({"owner": "shop"});
    object["spec"]["backup"]["retentionDays"] = json!(9);
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    let is_applied = eventually("the changes", async || {
        let id = env.databases().get("orders").await.ok()?.data["status"]["instanceId"].clone();
        let instance = rds.instance(id.as_str()?)?;
        (instance["BackupRetentionPeriod"] == 9 && !instance.to_string().contains("team"))
            .then_some(())
    });
    is_applied
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));

    let needed: BTreeSet<_> = rds
        .needed_permissions()
        .into_iter()
        .map(|it| it.0)
        .collect();
    let statements = policy["Statement"].as_array().expect("statements");
    let actions = statements
        .iter()
        .flat_map(|it| it["Action"].as_array().expect("a list"));
    let allowed: BTreeSet<_> = actions
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    assert_eq!(allowed, needed);
}
