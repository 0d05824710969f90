//! Instances are private and encrypted unless the spec of the object sets otherwise.

use aws_sdk_rds::types::DbInstance;
use http::Request;
use kube::{Client, Config};
use lockstep_envtest::stays;
use serde_json::json;
use std::time::Duration;

use crate::env::{TestEnv, database};
use crate::proxy::{Proxy, towards_aws};

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden change.
const WHILE: Duration = Duration::from_secs(2);

/// Public access, storage encryption, and copying of tags to snapshots, as moto reports them.
fn settings(instance: &DbInstance) -> [Option<bool>; 3] {
    [
        instance.publicly_accessible(),
        instance.storage_encrypted(),
        instance.copy_tags_to_snapshot(),
    ]
}

/// Calls the EC2 API of moto without an SDK, and returns the texts of all elements `tag` of the response, in order.
async fn ec2(env: &TestEnv, action: &str, tag: &str) -> Vec<String> {
    let config: Config = towards_aws(env.moto());
    let client = Client::try_from(config).expect("a client");
    let scope = "AWS4-HMAC-SHA256 Credential=testing/20260101/eu-central-1/ec2/aws4_request";
    let request = Request::post("/")
        .header("content-type", "application/x-www-form-urlencoded")
        .header("authorization", scope)
        .body(format!("Action={action}&Version=2016-11-15").into_bytes())
        .expect("a request");
    let response = client.request_text(request).await.expect("moto answers");
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let pieces = response.split(&open).skip(1);
    let texts = pieces.filter_map(|piece| piece.split_once(&close));
    texts.map(|(text, _)| text.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_private_and_encrypted_and_its_snapshots_get_its_tags() {
    let env = TestEnv::start_on_moto().await;
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;
    let instances = env.instances().await;
    assert_eq!(
        settings(&instances[0]),
        [Some(false), Some(true), Some(true)]
    );
    let stored = env.databases().get("orders").await.expect("an object");
    let spec = &stored.data["spec"];
    assert_eq!(spec["network"], json!({"publiclyAccessible": false}));
    assert_eq!(spec["encryption"], json!({"enabled": true}));
    assert_eq!(spec["backup"]["copyTagsToSnapshot"], true);
    let status = &stored.data["status"];
    assert_eq!(status["publiclyAccessible"], false);
    assert_eq!(status["storageEncrypted"], true);

    let mut unencrypted = database("orders");
    unencrypted["spec"]["encryption"] = json!({"enabled": false});
    let message = env
        .kubectl_apply(&unencrypted)
        .expect_err("the field is immutable");
    assert!(message.contains("[encryption-immutable]"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_gets_the_network_settings_of_its_object_and_later_changes_of_them() {
    let env = TestEnv::start_on_moto().await;
    let subnets = ec2(&env, "DescribeSubnets", "subnetId").await;
    let groups = ec2(&env, "DescribeSecurityGroups", "groupId").await;
    let group = groups.first().expect("the default security group");
    env.rds
        .create_db_subnet_group()
        .db_subnet_group_name("databases")
        .db_subnet_group_description("for tests")
        .set_subnet_ids(Some(subnets[..2].to_vec()))
        .send()
        .await
        .expect("moto creates the subnet group");
    let mut orders = database("orders");
    orders["spec"]["network"] = json!({
        "subnetGroup": "databases", "securityGroups": [group], "publiclyAccessible": true,
    });
    orders["spec"]["encryption"] = json!({"enabled": false});
    orders["spec"]["backup"] = json!({"copyTagsToSnapshot": false});
    let printed = env.kubectl_apply(&orders);
    assert!(printed.is_ok(), "{printed:?}");
    env.condition("orders", "Ready", "True").await;
    let instances = env.instances().await;
    let instance = &instances[0];
    assert_eq!(settings(instance), [Some(true), Some(false), Some(false)]);
    let subnet_group = instance.db_subnet_group();
    assert_eq!(
        subnet_group.and_then(|group| group.db_subnet_group_name()),
        Some("databases")
    );
    let groups = instance.vpc_security_groups().iter();
    let groups: Vec<_> = groups.filter_map(|it| it.vpc_security_group_id()).collect();
    assert_eq!(groups, [group.as_str()]);

    // The spec makes the instance private.
    orders["spec"]["network"]["publiclyAccessible"] = json!(false);
    env.kubectl_apply(&orders).expect("stored");
    env.instance_that("the end of public access", |instance| {
        instance.publicly_accessible() == Some(false)
    })
    .await;
    orders["spec"]["network"]["subnetGroup"] = json!("elsewhere");
    let message = env
        .kubectl_apply(&orders)
        .expect_err("the subnet group is immutable");
    assert!(message.contains("[subnet-group-immutable]"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_public_unencrypted_instance_is_not_changed_and_the_status_reports_it() {
    let mut env = TestEnv::start_on_moto().await;
    env.installation.controller().kill();
    env.kubectl_apply(&database("orders")).expect("stored");
    let object = env.databases().get("orders").await.expect("an object");
    let uid = object.metadata.uid.clone().expect("a UID");
    let tag = aws_sdk_rds::types::Tag::builder()
        .key("database.example.com/uid")
        .value(&uid)
        .build();
    let made = env
        .rds
        .create_db_instance()
        .db_instance_identifier(format!("cdb-{uid}"))
        .engine("postgres")
        .engine_version("16.9")
        .db_instance_class("db.t4g.micro")
        .allocated_storage(100)
        .storage_type("gp3")
        .backup_retention_period(7)
        .master_username("app")
        .master_user_password("correct-horse")
        .port(5432)
        .publicly_accessible(true)
        .storage_encrypted(false)
        .copy_tags_to_snapshot(false)
        .tags(tag);
    made.send()
        .await
        .expect("an instance as an earlier release created it");
    let proxy = Proxy::before_aws(env.moto()).await;
    env.installation
        .restart_controller_in_aws(&[("AWS_ENDPOINT_URL", &proxy.url())])
        .expect("a controller");
    let ready = env.condition("orders", "Ready", "True").await;
    for part in ["publicly accessible", "not encrypted"] {
        assert!(ready.message.contains(part), "{}", ready.message);
    }
    let check = async || {
        let calls = proxy.calls();
        calls.iter().any(|call| call == "ModifyDBInstance")
    };
    stays(WHILE, "whether the instance was modified", check).await;
    let instances = env.instances().await;
    assert_eq!(
        settings(&instances[0]),
        [Some(true), Some(false), Some(false)]
    );
    let stored = env.databases().get("orders").await.expect("an object");
    assert_eq!(stored.data["status"]["publiclyAccessible"], true);
    assert_eq!(stored.data["status"]["storageEncrypted"], false);
}
