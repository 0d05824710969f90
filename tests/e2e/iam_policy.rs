//! The IAM policy that users give to the controller allows what the controller needs. All tests on the simulator of RDS run
//! with it.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_rds::error::ProvideErrorMetadata;
use aws_sdk_rds::types::Tag;
use lockstep_cloud_database_api::FINALIZER;
use lockstep_envtest::eventually;
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, database, iam_policy, rds_as};

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
    // As after a restore of the cluster without the statuses.
    let mut restored = database("restored");
    restored["metadata"]["finalizers"] = json!([FINALIZER]);
    env.kubectl_apply(&restored)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("restored", "Ready", "True").await;
    env.kubectl(&["delete", "cdb", "orders", "restored", "--timeout=60s"])
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

/// Returns true if the policy of options allows an instance to be replicated, and its earlier state to be restored.
async fn allows(rds: &Simulator, options: &[&str], source: &str) -> bool {
    let named = ["--replicate=legacy", "--restore-instance=legacy"];
    let policy = iam_policy(&[&named[..], options].concat());
    rds.set_policy(Simulator::ACCESS_KEY, &policy);
    let client = rds_as(Simulator::ACCESS_KEY, &rds.endpoint(), Simulator::REGION).await;
    let cluster = Tag::builder().key("database.example.com/cluster");
    let cluster = cluster.value("blue").build();
    let replica = client
        .create_db_instance_read_replica()
        .db_instance_identifier("cdb-replica")
        .source_db_instance_identifier(source)
        .tags(cluster.clone())
        .send()
        .await;
    let restored = client
        .restore_db_instance_to_point_in_time()
        .target_db_instance_identifier("cdb-restored")
        .source_db_instance_identifier(source)
        .use_latest_restorable_time(true)
        .tags(cluster)
        .send()
        .await;
    let is_allowed = [
        replica
            .map_err(|error| error.code().map(str::to_owned))
            .err(),
        restored
            .map_err(|error| error.code().map(str::to_owned))
            .err(),
    ]
    .map(|error| {
        let code = error.map(|code| code.unwrap_or_default());
        assert!(
            code.iter().all(|code| code == "AccessDenied"),
            "{source}: {code:?}"
        );
        code.is_none()
    });
    assert_eq!(is_allowed[0], is_allowed[1], "{source}");
    assert_eq!(rds.take_violations().is_empty(), is_allowed[0]);
    if is_allowed[0] {
        rds.remove_instance("cdb-replica");
        rds.remove_instance("cdb-restored");
    }
    is_allowed[0]
}

#[tokio::test]
async fn an_instance_of_another_cluster_is_no_source_unless_the_policy_names_it() {
    let rds = Simulator::start().await.expect("a simulator");
    rds.set_speed(0.0);
    for (id, cluster) in [
        ("legacy", None),
        ("cdb-ours", Some("blue")),
        ("cdb-unnamed", None),
        ("cdb-theirs", Some("green")),
    ] {
        let cluster =
            cluster.map(|name| json!({"Key": "database.example.com/cluster", "Value": name}));
        rds.create_instance(json!({
            "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
            "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20, "StorageType": "gp3",
            "MasterUsername": "app", "MasterUserPassword": "correct-horse",
            "BackupRetentionPeriod": 7, "Tags": cluster.into_iter().collect::<Vec<_>>(),
        }));
    }
    rds.advance(Duration::from_hours(1));
    let blue = "--cluster-name=blue";
    let named = [
        blue,
        "--replicate=cdb-theirs",
        "--restore-instance=cdb-theirs",
    ];
    for (options, source, expected) in [
        (&[blue][..], "legacy", true),
        (&[blue][..], "cdb-ours", true),
        (&[blue][..], "cdb-unnamed", true),
        (&[blue][..], "cdb-theirs", false),
        (&named[..], "cdb-theirs", true),
        // Without a name, the policy cannot tell them apart.
        (&[][..], "cdb-theirs", true),
    ] {
        let found = allows(&rds, options, source).await;
        assert_eq!(found, expected, "{source} with {options:?}");
    }
}
