//! Deletions of instances, on a simulator of RDS.

use std::time::Duration;

use lockstep_envtest::eventually;
use rds_simulator::{Disturbance, Outcome};
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, database};

async fn uid(env: &TestEnv, name: &str) -> String {
    let object = env.databases().get(name).await.expect("the object");
    object.metadata.uid.expect("a UID")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_tells_its_final_snapshot_which_has_the_tags() {
    let (env, rds) = TestEnv::start_on_simulator().await;
    let mut object = database("orders");
    object["spec"]["deletionPolicy"] = json!("Snapshot");
    // RDS does not copy the tags.
    object["spec"]["backup"] = json!({"copyTagsToSnapshot": false});
    object["spec"]["tags"] = json!({"team": "shop"});
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Ready", "True").await;
    let snapshot = format!("cdb-{}-final", uid(&env, "orders").await);

    // RDS rejects the deletion first, and says why.
    let text = "the instance is used by something";
    let error = Disturbance::Error("InvalidDBInstanceState".to_owned(), text.to_owned());
    rds.inject("DeleteDBInstance", error, 3);
    env.kubectl(&["delete", "cdb/orders", "--wait=false"])
        .unwrap_or_else(|error| env.fail(&error));
    let told = eventually("the reason of RDS", async || {
        let object = env.databases().get("orders").await.ok()?;
        let message = object.data["status"]["message"].as_str()?;
        message.contains(text).then_some(())
    });
    told.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.gone("orders").await;
    env.has_event("reason=Deleting", &snapshot).await;
    let snapshots = rds.snapshots();
    let found = snapshots
        .iter()
        .find(|it| it["DBSnapshotIdentifier"] == snapshot.as_str());
    let tags = found.expect("the final snapshot")["TagList"].clone();
    let has = |key: &str, value: &str| {
        let mut tags = tags.as_array().into_iter().flatten();
        tags.any(|tag: &Value| tag["Key"] == key && tag["Value"] == value)
    };
    assert!(has("team", "shop"), "{tags}");
    assert!(
        has("database.example.com/object", "default/orders"),
        "{tags}"
    );
}

/// No watch reports that a permission was granted. Each deletion alone would wait for minutes.
#[tokio::test(flavor = "multi_thread")]
async fn one_accepted_deletion_makes_all_others_try_again_that_were_refused() {
    let options = EnvOptions {
        controller_args: vec!["--rds-resync-period=10m".to_owned()],
        ..EnvOptions::default()
    };
    let (env, rds) = TestEnv::start_on_simulator_with(options).await;
    let names = ["orders", "billing", "stock"];
    for name in names {
        let mut object = database(name);
        object["spec"]["deletionPolicy"] = json!("Delete");
        env.kubectl_apply(&object)
            .unwrap_or_else(|error| env.fail(&error));
    }
    for name in names {
        env.condition(name, "Ready", "True").await;
    }
    let denied = Disturbance::access_denied("DeleteDBInstance");
    rds.inject("DeleteDBInstance", denied, 1_000);
    for name in names {
        let target = format!("cdb/{name}");
        env.kubectl(&["delete", &target, "--wait=false"])
            .unwrap_or_else(|error| env.fail(&error));
    }
    for name in names {
        env.condition_because(name, "Ready", "AccessDenied").await;
    }
    rds.clear_injections();
    let annotation = "lockstep.dev/reconcile-requested-at=now";
    env.kubectl(&["annotate", "cdb/stock", annotation])
        .unwrap_or_else(|error| env.fail(&error));
    for name in names {
        env.gone(name).await;
    }
    assert_eq!(rds.instance_ids(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_an_instance_goes_at_once() {
    let options = EnvOptions {
        // It would keep the object for a minute.
        controller_args: vec!["--rds-not-found-grace-period=1m".to_owned()],
        ..EnvOptions::default()
    };
    let (mut env, rds) = TestEnv::start_on_simulator_with(options).await;
    let mut object = database("orders");
    object["spec"]["credentials"]["secretName"] = json!("none");
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition_because("orders", "Ready", "SecretNotFound")
        .await;
    env.kubectl(&["delete", "cdb/orders", "--timeout=20s"])
        .unwrap_or_else(|error| env.fail(&error));

    // RDS may reject the repetition of a request that it has accepted, for lack of capacity: only the grace period proves that
    // nothing exists.
    rds.set_capacity("db.t4g.micro", false);
    env.kubectl_apply(&database("billing"))
        .unwrap_or_else(|error| env.fail(&error));
    let failed = env.condition("billing", "Ready", "False").await;
    let rejected = eventually("the rejection", async || {
        let found = env.condition("billing", "Ready", "False").await;
        found
            .message
            .contains("InsufficientDBInstanceCapacity")
            .then_some(())
    });
    rejected
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error}: {}", failed.message)));
    env.installation
        .restart_controller_with_value("--rds-not-found-grace-period", "200ms")
        .expect("restarted");
    env.kubectl(&["delete", "cdb/billing", "--timeout=40s"])
        .unwrap_or_else(|error| env.fail(&error));
    assert_eq!(rds.instance_ids(), Vec::<String>::new());
}

/// Otherwise the object would go with its finalizer, and the instance would run on.
#[tokio::test(flavor = "multi_thread")]
async fn answers_without_the_instance_orphan_nothing() {
    let options = EnvOptions {
        controller_args: vec!["--rds-not-found-grace-period=1m".to_owned()],
        ..EnvOptions::default()
    };
    let (env, rds) = TestEnv::start_on_simulator_with(options).await;
    let names = ["orders", "billing", "stock"];
    for name in names {
        let mut object = database(name);
        object["spec"]["deletionPolicy"] = json!("Delete");
        env.kubectl_apply(&object)
            .unwrap_or_else(|error| env.fail(&error));
    }
    for name in names {
        env.condition(name, "Ready", "True").await;
    }
    // The controller sees the instances as `deleting`, and need not wait for the grace period.
    rds.set_timing(|timing| timing.state = Duration::from_secs(2));
    // The first answers to the deletion show nothing.
    rds.inject("DescribeDBInstances", Disturbance::Nothing, 2);
    for name in names {
        let target = format!("cdb/{name}");
        env.kubectl(&["delete", &target, "--wait=false"])
            .unwrap_or_else(|error| env.fail(&error));
    }
    for name in names {
        env.gone(name).await;
    }
    assert_eq!(rds.instance_ids(), Vec::<String>::new(), "an orphan");
    let calls = rds.calls("DeleteDBInstance").into_iter();
    let accepted = calls.filter(|it| it.outcome == Outcome::Succeeded);
    assert_eq!(accepted.count(), names.len());
}
