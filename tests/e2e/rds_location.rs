//! A controller in another region or account than an object's instance does not change that object.

use control_plane::{Moto, eventually, stays};
use kube::api::DeleteParams;
use std::time::Duration;

use crate::proxy::Proxy;
use crate::world::{World, database, rds};

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden change.
const WHILE: Duration = Duration::from_secs(2);

async fn two_ready(world: &World) {
    for name in ["orders", "billing"] {
        world.kubectl_apply(&database(name)).expect("stored");
        world.condition(name, "Ready", "True").await;
    }
    let stored = world.databases().get("orders").await.expect("an object");
    let status = &stored.data["status"];
    assert_eq!(status["region"], "eu-central-1");
    assert_eq!(status["accountId"], "123456789012");
    let instances = world.instances().await;
    let same = |instance: &&aws_sdk_rds::types::DbInstance| {
        instance.db_instance_identifier() == status["instanceId"].as_str()
    };
    let instance = instances.iter().find(same).expect("the instance exists");
    assert_eq!(status["arn"].as_str(), instance.db_instance_arn());
    assert_eq!(status["resourceId"].as_str(), instance.dbi_resource_id());
}

/// Asserts that the controller in the other location changes neither object: one exists, the other is being deleted.
async fn is_left_alone(world: &World, proxy: &Proxy, reason: &str) {
    let before = world.databases().get("orders").await.expect("an object");
    let ready = world.condition_because("orders", "Ready", reason).await;
    assert_eq!(ready.status, "False");
    for part in ["eu-central-1", "123456789012"] {
        assert!(ready.message.contains(part), "{}", ready.message);
    }
    world.condition_because("orders", "Stalled", reason).await;
    world
        .databases()
        .delete("billing", &DeleteParams::default())
        .await
        .expect("deletion begins");
    world.condition_because("billing", "Stalled", reason).await;
    for name in ["orders", "billing"] {
        let warnings = world.warnings(name);
        assert!(warnings.contains(reason), "of {name}: {warnings}");
    }
    let calls = async || proxy.calls().len();
    stays(WHILE, "the number of calls to RDS", calls).await;
    assert_eq!(proxy.calls(), Vec::<String>::new());
    let billing = world
        .databases()
        .get("billing")
        .await
        .expect("the object still exists");
    let finalizers = billing.metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers, ["database.example.com/finalizer"]);
    assert_eq!(world.instances().await.len(), 2);
    let after = world.databases().get("orders").await.expect("an object");
    for field in ["endpoint", "arn", "region", "accountId"] {
        assert_eq!(
            after.data["status"][field], before.data["status"][field],
            "`status.{field}` has changed"
        );
    }
}

/// Restarts the controller in the location of both instances, and checks that it resumes reconciliation.
async fn goes_on(mut world: World, proxy: &Proxy) {
    world
        .installation
        .restart_controller_in_aws(&[("AWS_ENDPOINT_URL", &proxy.url())])
        .expect("a controller");
    world.condition("orders", "Ready", "True").await;
    world.gone("billing").await;
    assert_eq!(world.instances().await.len(), 1);
}

/// Restarts the controller in another region than that of the instances.
fn restart_elsewhere(world: &mut World) {
    world
        .installation
        .restart_controller_in_aws(&[("AWS_REGION", "us-east-1")])
        .expect("a controller");
}

/// Number of instances in the other region.
async fn instances_elsewhere(world: &World) -> usize {
    let there = rds(&world.moto.endpoint(), "us-east-1").await;
    let there = there.describe_db_instances().send().await;
    let there = there.expect("moto answers").db_instances;
    there.unwrap_or_default().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_of_another_region_does_not_change_an_object_of_this_region() {
    let mut world = World::start().await;
    two_ready(&world).await;
    let proxy = Proxy::before_aws(&world.moto).await;
    world
        .installation
        .restart_controller_in_aws(&[
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &proxy.url()),
        ])
        .expect("a controller");
    is_left_alone(&world, &proxy, "RegionMismatch").await;

    // A new object gets its instance in the new region.
    world.kubectl_apply(&database("fresh")).expect("stored");
    world.condition("fresh", "Ready", "True").await;
    assert_eq!(
        instances_elsewhere(&world).await,
        1,
        "only the object that was created there has an instance"
    );
    world
        .kubectl(&["delete", "cdb/fresh", "--timeout=60s"])
        .unwrap_or_else(|error| world.fail(&error));
    goes_on(world, &proxy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_of_another_account_does_not_change_an_object_of_this_account() {
    let mut world = World::start().await;
    two_ready(&world).await;
    let other = Moto::start_as(&world.cluster.logs(), "210987654321")
        .await
        .expect("another account");
    let proxy = Proxy::before_aws(&other).await;
    world
        .installation
        .restart_controller_in_aws(&[("AWS_ENDPOINT_URL", &proxy.url())])
        .expect("a controller");
    is_left_alone(&world, &proxy, "AccountMismatch").await;
    let here = Proxy::before_aws(&world.moto).await;
    goes_on(world, &here).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_deletion_policy_retain_can_be_deleted_from_any_region() {
    let mut world = World::start().await;
    let mut orders = database("orders");
    orders["spec"]["deletionPolicy"] = "Retain".into();
    world.kubectl_apply(&orders).expect("stored");
    world.condition("orders", "Ready", "True").await;
    restart_elsewhere(&mut world);
    world
        .condition_because("orders", "Ready", "RegionMismatch")
        .await;
    world
        .kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| world.fail(&error));
    assert_eq!(world.instances().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_instance_of_an_object_from_an_earlier_release_is_not_created_again_elsewhere() {
    let mut world = World::start().await;
    world.kubectl_apply(&database("orders")).expect("stored");
    world.condition("orders", "Ready", "True").await;
    world.installation.controller().kill();
    let unknown = ["region", "accountId", "arn", "resourceId", "enforcedFields"];
    let unknown = unknown.map(|field| (field.to_owned(), serde_json::Value::Null));
    let status: serde_json::Map<_, _> = unknown.into_iter().collect();
    let patch = serde_json::json!({"status": status}).to_string();
    world
        .kubectl(&[
            "patch",
            "cdb/orders",
            "--subresource=status",
            "--type=merge",
            "--patch",
            &patch,
        ])
        .unwrap_or_else(|error| world.fail(&error));
    restart_elsewhere(&mut world);
    world
        .condition_because("orders", "Stalled", "InstanceMissing")
        .await;
    assert_eq!(
        instances_elsewhere(&world).await,
        0,
        "the instance was created again"
    );

    world
        .installation
        .restart_controller_in_aws(&[])
        .expect("a controller");
    world.condition("orders", "Ready", "True").await;
    let stored = world.databases().get("orders").await.expect("an object");
    assert_eq!(stored.data["status"]["region"], "eu-central-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_instance_could_not_be_created_belongs_to_no_region() {
    let mut world = World::start().await;
    let mut orders = database("orders");
    orders["spec"]["network"] = serde_json::json!({"subnetGroup": "nowhere"});
    world.kubectl_apply(&orders).expect("stored");
    let is_refused = async |world: &World| {
        let ready = world
            .condition_because("orders", "Ready", "RdsCallFailed")
            .await;
        assert!(ready.message.contains("nowhere"), "{}", ready.message);
        let stored = world.databases().get("orders").await.expect("an object");
        assert_eq!(stored.data["status"]["region"], serde_json::Value::Null);
    };
    is_refused(&world).await;
    let before = world.warnings("orders");
    restart_elsewhere(&mut world);
    eventually("another attempt to create the instance", async || {
        (world.warnings("orders") != before).then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    is_refused(&world).await;
    assert!(!world.warnings("orders").contains("RegionMismatch"));
    world
        .kubectl(&["delete", "cdb/orders", "--timeout=60s"])
        .unwrap_or_else(|error| world.fail(&error));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_where_the_cluster_cannot_record_its_region() {
    let (world, proxy) = World::start_behind_proxy().await;
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/region";
    let crd = "clouddatabases.database.example.com";
    let patch = serde_json::json!([{"op": "remove", "path": fields}]).to_string();
    world
        .kubectl(&["patch", "crd", crd, "--type=json", "--patch", &patch])
        .unwrap_or_else(|error| world.fail(&error));
    world.kubectl_apply(&database("orders")).expect("stored");
    eventually("a Warning Event", async || {
        let warnings = world.warnings("orders");
        (warnings.contains("StatusFieldsDropped") && warnings.contains("region")).then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    let creations = async || {
        let calls = proxy.calls();
        let creations = calls.iter().filter(|call| *call == "CreateDBInstance");
        creations.count()
    };
    stays(WHILE, "creations", creations).await;
    assert_eq!(world.instances().await.len(), 0);
}
