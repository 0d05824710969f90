//! A controller in another region or account than an object's instance does not change that object.

use kube::api::DeleteParams;
use lockstep_envtest::{Moto, eventually, stays};
use std::time::Duration;

use crate::env::{TestEnv, database, rds};
use crate::proxy::Proxy;

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden change.
const WHILE: Duration = Duration::from_secs(2);

async fn two_ready(env: &TestEnv) {
    for name in ["orders", "billing"] {
        env.kubectl_apply(&database(name)).expect("stored");
        env.condition(name, "Ready", "True").await;
    }
    let stored = env.databases().get("orders").await.expect("an object");
    let status = &stored.data["status"];
    assert_eq!(status["region"], "eu-central-1");
    assert_eq!(status["accountId"], "123456789012");
    let instances = env.instances().await;
    let same = |instance: &&aws_sdk_rds::types::DbInstance| {
        instance.db_instance_identifier() == status["instanceId"].as_str()
    };
    let instance = instances.iter().find(same).expect("the instance exists");
    assert_eq!(status["arn"].as_str(), instance.db_instance_arn());
    assert_eq!(status["resourceId"].as_str(), instance.dbi_resource_id());
}

/// Asserts that the controller in the other location changes neither object: one exists, the other is being deleted.
async fn is_left_alone(env: &TestEnv, proxy: &Proxy, reason: &str) {
    let before = env.databases().get("orders").await.expect("an object");
    let ready = env.condition_because("orders", "Ready", reason).await;
    assert_eq!(ready.status, "False");
    for part in ["eu-central-1", "123456789012"] {
        assert!(ready.message.contains(part), "{}", ready.message);
    }
    env.condition_because("orders", "Stalled", reason).await;
    env.databases()
        .delete("billing", &DeleteParams::default())
        .await
        .expect("deletion begins");
    env.condition_because("billing", "Stalled", reason).await;
    for name in ["orders", "billing"] {
        env.warned(name, reason).await;
    }
    let calls = async || proxy.calls().len();
    stays(WHILE, "the number of calls to RDS", calls).await;
    assert_eq!(proxy.calls(), Vec::<String>::new());
    let billing = env
        .databases()
        .get("billing")
        .await
        .expect("the object still exists");
    let finalizers = billing.metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers, ["database.example.com/finalizer"]);
    assert_eq!(env.instances().await.len(), 2);
    let after = env.databases().get("orders").await.expect("an object");
    for field in ["endpoint", "arn", "region", "accountId"] {
        assert_eq!(
            after.data["status"][field], before.data["status"][field],
            "`status.{field}` has changed"
        );
    }
}

/// Restarts the controller in the location of both instances, and checks that it resumes reconciliation.
async fn goes_on(mut env: TestEnv, proxy: &Proxy) {
    env.installation
        .restart_controller_in_aws(&[("AWS_ENDPOINT_URL", &proxy.url())])
        .expect("a controller");
    env.condition("orders", "Ready", "True").await;
    env.gone("billing").await;
    assert_eq!(env.instances().await.len(), 1);
}

/// Restarts the controller in another region than that of the instances.
fn restart_elsewhere(env: &mut TestEnv) {
    env.installation
        .restart_controller_in_aws(&[("AWS_REGION", "us-east-1")])
        .expect("a controller");
}

/// Number of instances in the other region.
async fn instances_elsewhere(env: &TestEnv) -> usize {
    let other_region = rds(&env.moto().endpoint(), "us-east-1").await;
    let other_region = other_region.describe_db_instances().send().await;
    let other_region = other_region.expect("moto answers").db_instances;
    other_region.unwrap_or_default().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_of_another_region_does_not_change_an_object_of_this_region() {
    let mut env = TestEnv::start_on_moto().await;
    two_ready(&env).await;
    let proxy = Proxy::before_aws(env.moto()).await;
    env.installation
        .restart_controller_in_aws(&[
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &proxy.url()),
        ])
        .expect("a controller");
    is_left_alone(&env, &proxy, "RegionMismatch").await;

    // A new object gets its instance in the new region.
    env.kubectl_apply(&database("fresh")).expect("stored");
    env.condition("fresh", "Ready", "True").await;
    assert_eq!(
        instances_elsewhere(&env).await,
        1,
        "only the object that was created there has an instance"
    );
    env.kubectl(&["delete", "cdb/fresh", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    goes_on(env, &proxy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_of_another_account_does_not_change_an_object_of_this_account() {
    let mut env = TestEnv::start_on_moto().await;
    two_ready(&env).await;
    let other = Moto::start_as(&env.cluster.logs(), "210987654321")
        .await
        .expect("another account");
    let proxy = Proxy::before_aws(&other).await;
    env.installation
        .restart_controller_in_aws(&[("AWS_ENDPOINT_URL", &proxy.url())])
        .expect("a controller");
    is_left_alone(&env, &proxy, "AccountMismatch").await;
    let proxy = Proxy::before_aws(env.moto()).await;
    goes_on(env, &proxy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_deletion_policy_retain_can_be_deleted_from_any_region() {
    let mut env = TestEnv::start_on_moto().await;
    let mut orders = database("orders");
    orders["spec"]["deletionPolicy"] = "Retain".into();
    env.kubectl_apply(&orders).expect("stored");
    env.condition("orders", "Ready", "True").await;
    restart_elsewhere(&mut env);
    env.condition_because("orders", "Ready", "RegionMismatch")
        .await;
    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    assert_eq!(env.instances().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_instance_of_an_object_from_an_earlier_release_is_not_created_again_elsewhere() {
    let mut env = TestEnv::start_on_moto().await;
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;
    env.installation.controller().kill();
    let unknown = ["region", "accountId", "arn", "resourceId", "enforcedFields"];
    let unknown = unknown.map(|field| (field.to_owned(), serde_json::Value::Null));
    let status: serde_json::Map<_, _> = unknown.into_iter().collect();
    let patch = serde_json::json!({"status": status}).to_string();
    env.kubectl(&[
        "patch",
        "cdb/orders",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ])
    .unwrap_or_else(|error| env.fail(&error));
    restart_elsewhere(&mut env);
    env.condition_because("orders", "Stalled", "InstanceMissing")
        .await;
    assert_eq!(
        instances_elsewhere(&env).await,
        0,
        "the instance was created again"
    );

    env.installation
        .restart_controller_in_aws(&[])
        .expect("a controller");
    env.condition("orders", "Ready", "True").await;
    let stored = env.databases().get("orders").await.expect("an object");
    assert_eq!(stored.data["status"]["region"], "eu-central-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_instance_could_not_be_created_belongs_to_no_region() {
    let mut env = TestEnv::start_on_moto().await;
    let mut orders = database("orders");
    orders["spec"]["network"] = serde_json::json!({"subnetGroup": "nowhere"});
    env.kubectl_apply(&orders).expect("stored");
    let is_rejected = async |env: &TestEnv| {
        let ready = env
            .condition_because("orders", "Ready", "RejectedByRds")
            .await;
        assert!(ready.message.contains("nowhere"), "{}", ready.message);
        let stored = env.databases().get("orders").await.expect("an object");
        assert_eq!(stored.data["status"]["region"], serde_json::Value::Null);
    };
    is_rejected(&env).await;
    let before = env.warnings("orders").await;
    restart_elsewhere(&mut env);
    eventually("another attempt to create the instance", async || {
        (env.warnings("orders").await != before).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    is_rejected(&env).await;
    assert!(!env.warnings("orders").await.contains("RegionMismatch"));
    env.kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_where_the_cluster_cannot_record_its_region() {
    let (env, proxy) = TestEnv::start_behind_proxy().await;
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/region";
    let crd = "clouddatabases.database.example.com";
    let patch = serde_json::json!([{"op": "remove", "path": fields}]).to_string();
    env.kubectl(&["patch", "crd", crd, "--type=json", "--patch", &patch])
        .unwrap_or_else(|error| env.fail(&error));
    env.kubectl_apply(&database("orders")).expect("stored");
    eventually("a Warning Event", async || {
        let warnings = env.warnings("orders").await;
        (warnings.contains("StatusFieldsDropped") && warnings.contains("region")).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    let creations = async || {
        let calls = proxy.calls();
        let creations = calls.iter().filter(|call| *call == "CreateDBInstance");
        creations.count()
    };
    stays(WHILE, "creations", creations).await;
    assert_eq!(env.instances().await.len(), 0);
}
