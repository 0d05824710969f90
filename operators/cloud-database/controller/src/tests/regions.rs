//! Regions that annotations of objects choose.

use lockstep_cloud_database_api::CloudDatabase;
use rds_simulator::Simulator;
use serde_json::json;

use crate::aws::access::Access;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::tests::environment::Environment;

const OTHER_REGION: &str = "us-east-1";

fn move_to(env: &Environment, region: &str) {
    env.edit("orders", |object| {
        object["metadata"]["annotations"] = json!({"database.example.com/region": region});
    });
}

#[tokio::test]
async fn an_instance_is_in_the_region_of_the_annotation() {
    let env = Environment::start().await;
    env.store("orders", &json!({}));
    move_to(&env, OTHER_REGION);
    env.reconcile_repeatedly("orders").await;
    let status = &env.object("orders")["status"];
    assert_eq!(status["region"], OTHER_REGION);
    let there = env.rds.at(Simulator::ACCOUNT, OTHER_REGION);
    assert!(there.instance("cdb-orders").is_some());
    assert!(env.rds.instance("cdb-orders").is_none());
}

/// The runtime compares the region before each reconciliation. The annotation can change in between.
#[tokio::test]
async fn an_annotation_that_changes_at_any_time_makes_no_second_instance() {
    for reconciliations in 1..6 {
        let env = Environment::start().await;
        env.store("orders", &json!({}));
        for _ in 0..reconciliations {
            env.reconcile("orders").await;
        }
        move_to(&env, OTHER_REGION);
        env.rds.clear_journal();
        for _ in 0..3 {
            let output = env.reconcile_identified("orders").await;
            let error = output.error.expect("an error");
            assert_eq!(error.reason(), "RegionMismatch");
        }
        assert!(env.rds.writes().is_empty());
        move_to(&env, Simulator::REGION);
        let output = env.reconcile_repeatedly("orders").await;
        assert!(output.readiness.expect("a state").ready);
    }
}

/// Before an instance is created or adopted, the annotations are read from the API server: the watch caches may be outdated.
#[tokio::test]
async fn nothing_is_created_with_annotations_that_are_outdated() {
    let env = Environment::start().await;
    env.store("orders", &json!({}));
    let cached = env.object("orders");
    let cached: CloudDatabase = serde_json::from_value(cached).expect("a database");
    let mut shared = env.reconciler.shared.clone();
    shared.watches_namespaces = true;
    let client = shared.clients.default_client().await;
    let reconciler = InstanceReconciler::new(shared, Access::default(), client);
    let result = async || {
        let result = reconciler.require_current(&cached).await;
        result.map_err(|error| error.reason())
    };
    assert_eq!(result().await, Err("NamespaceUnknown"));
    env.annotate_namespace("shop", &json!({}));
    assert_eq!(result().await, Ok(()));
    move_to(&env, OTHER_REGION);
    assert_eq!(result().await, Err("AccessChanged"));
    move_to(&env, "sa-east-1");
    assert_eq!(result().await, Err("RegionNotAllowed"));
    move_to(&env, Simulator::REGION);
    assert_eq!(result().await, Ok(()));
    let role = json!({"database.example.com/role-arn": "arn:aws:iam::111111111111:role/team"});
    env.annotate_namespace("shop", &role);
    assert_eq!(result().await, Err("AccessChanged"));
}
