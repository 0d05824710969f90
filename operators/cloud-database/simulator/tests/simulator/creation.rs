//! `CreateDBInstance`: states, defaults, and errors.

use std::time::Duration;

use aws_sdk_rds::operation::create_db_instance::builders::CreateDBInstanceFluentBuilder as Creation;
use aws_sdk_rds::types::Tag;

use crate::client::{available, creation, describe, outcome, settle, start, status};

#[tokio::test]
async fn a_new_instance_is_created_and_backed_up_before_it_is_available() {
    let (simulator, client) = start().await;
    simulator.set_timing(|timing| timing.state = Duration::from_mins(5));
    let created = creation(&client, "Orders").send().await.expect("an answer");
    let created = created.db_instance().expect("an instance");
    assert_eq!(created.db_instance_identifier(), Some("orders"));
    assert_eq!(created.db_instance_status(), Some("creating"));
    assert!(created.endpoint().is_none() && created.instance_create_time().is_none());
    simulator.advance(Duration::from_mins(4));
    assert_eq!(status(&client, "orders").await, "creating");
    simulator.advance(Duration::from_mins(2));
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_status(), Some("backing-up"));
    let endpoint = instance.endpoint().expect("an endpoint");
    let address = endpoint.address().expect("a host");
    assert!(address.starts_with("orders.c"), "{address}");
    assert!(
        address.ends_with(".eu-central-1.rds.amazonaws.com"),
        "{address}"
    );
    assert_eq!(endpoint.port(), Some(5432));
    assert!(instance.latest_restorable_time().is_none());
    simulator.advance(Duration::from_mins(5));
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_status(), Some("available"));
    assert!(instance.latest_restorable_time().is_some());
    assert_eq!(instance.dbi_resource_id(), created.dbi_resource_id());
    let arn = "arn:aws:rds:eu-central-1:123456789012:db:orders";
    assert_eq!(instance.db_instance_arn(), Some(arn));
}

#[tokio::test]
async fn an_instance_has_the_defaults_of_rds() {
    let (simulator, client) = start().await;
    let instance = available(&simulator, &client, "orders").await;
    assert_eq!(instance.publicly_accessible(), Some(true));
    assert_eq!(instance.storage_encrypted(), Some(false));
    assert_eq!(instance.copy_tags_to_snapshot(), Some(false));
    assert_eq!(instance.auto_minor_version_upgrade(), Some(true));
    assert_eq!(instance.backup_retention_period(), Some(1));
    assert_eq!(instance.deletion_protection(), Some(false));
    assert_eq!(instance.multi_az(), Some(false));
    assert_eq!(instance.iops(), Some(3_000));
    assert_eq!(instance.storage_throughput(), Some(125));
    assert_eq!(
        instance.ca_certificate_identifier(),
        Some("rds-ca-rsa2048-g1")
    );
    let lifecycle = instance.engine_lifecycle_support();
    assert_eq!(lifecycle, Some("open-source-rds-extended-support"));
    assert!(instance.preferred_backup_window().is_some());
    assert!(instance.preferred_maintenance_window().is_some());
    let group = instance.db_subnet_group().expect("a subnet group");
    assert_eq!(group.db_subnet_group_name(), Some("default"));
    let parameters = &instance.db_parameter_groups()[0];
    assert_eq!(
        parameters.db_parameter_group_name(),
        Some("default.postgres16")
    );

    simulator.add_subnet_group("databases");
    let private = creation(&client, "private").db_subnet_group_name("databases");
    let private = private
        .storage_encrypted(true)
        .engine_version("16")
        .iops(3_000);
    let private = private.storage_type("io1").set_storage_type(None);
    private.send().await.expect("an instance");
    let instance = describe(&client, "private").await.expect("the instance");
    assert_eq!(instance.publicly_accessible(), Some(false));
    assert_eq!(instance.engine_version(), Some("16.10"));
    assert_eq!(instance.storage_type(), Some("io1"));
    let key = instance.kms_key_id().expect("the default key");
    assert!(
        key.starts_with("arn:aws:kms:eu-central-1:123456789012:key/"),
        "{key}"
    );
    assert_ne!(instance.dbi_resource_id(), None);
    let other = describe(&client, "orders").await.expect("the instance");
    assert_ne!(instance.dbi_resource_id(), other.dbi_resource_id());
}

/// Change of a valid request.
type Change = fn(Creation) -> Creation;

/// Requests that RDS rejects, with the code of the error.
const REJECTED: &[(&str, Change)] = &[
    ("DBInstanceAlreadyExists", |it| {
        it.db_instance_identifier("Taken")
    }),
    ("InvalidParameterValue", |it| {
        it.db_instance_identifier("1a")
    }),
    ("InvalidParameterValue", |it| it.engine("cassandra")),
    ("InvalidParameterCombination", |it| it.engine_version("99")),
    ("InvalidParameterValue", |it| {
        it.db_instance_class("db.none.large")
    }),
    ("InvalidParameterCombination", |it| {
        it.db_instance_class("db.t2.micro")
    }),
    ("InsufficientDBInstanceCapacity", |it| {
        it.db_instance_class("db.r6g.large")
    }),
    ("StorageTypeNotSupported", |it| {
        it.storage_type("io2").iops(1_000)
    }),
    ("MissingParameter", |it| it.set_allocated_storage(None)),
    ("InvalidParameterCombination", |it| it.allocated_storage(19)),
    ("InvalidParameterCombination", |it| it.iops(3_000)),
    ("InvalidParameterCombination", |it| it.storage_type("io1")),
    ("InvalidParameterCombination", |it| {
        it.max_allocated_storage(100)
    }),
    ("InvalidParameterValue", |it| it.storage_type("gp9")),
    ("MissingParameter", |it| it.set_master_username(None)),
    ("MissingParameter", |it| it.set_master_user_password(None)),
    ("InvalidParameterValue", |it| it.master_username("admin")),
    ("InvalidParameterValue", |it| {
        it.master_user_password("short")
    }),
    ("InvalidParameterCombination", |it| {
        it.manage_master_user_password(true)
    }),
    ("InvalidParameterCombination", |it| {
        it.master_user_secret_kms_key_id("alias/aws/secretsmanager")
    }),
    ("InvalidParameterValue", |it| it.db_name("order-s")),
    ("InvalidParameterValue", |it| it.port(80)),
    ("InvalidParameterValue", |it| it.backup_retention_period(36)),
    ("InvalidParameterValue", |it| {
        it.preferred_backup_window("3-4")
    }),
    ("InvalidParameterValue", |it| {
        let it = it.preferred_backup_window("03:00-04:00");
        it.preferred_maintenance_window("sun:03:00-sun:04:00")
    }),
    ("InvalidParameterCombination", |it| {
        it.multi_az(true).availability_zone("eu-central-1a")
    }),
    ("InvalidParameterValue", |it| it.monitoring_interval(7)),
    ("InvalidParameterCombination", |it| {
        it.monitoring_interval(60)
    }),
    ("InvalidParameterCombination", |it| {
        let it = it.monitoring_interval(0);
        it.monitoring_role_arn("arn:aws:iam::123456789012:role/monitoring")
    }),
    ("InvalidParameterCombination", |it| {
        it.dedicated_log_volume(true)
    }),
    ("InvalidParameterCombination", |it| {
        let it = it.engine("mariadb").engine_version("11.4");
        it.engine_lifecycle_support("open-source-rds-extended-support")
    }),
    ("NetworkTypeNotSupported", |it| it.network_type("DUAL")),
    ("InvalidParameterCombination", |it| {
        it.enable_cloudwatch_logs_exports("slowquery")
    }),
    ("DBSubnetGroupNotFoundFault", |it| {
        it.db_subnet_group_name("nowhere")
    }),
    ("DBParameterGroupNotFound", |it| {
        it.db_parameter_group_name("none")
    }),
    ("InvalidParameterCombination", |it| {
        it.db_parameter_group_name("default.postgres17")
    }),
    ("OptionGroupNotFoundFault", |it| {
        it.option_group_name("none")
    }),
    ("DBSecurityGroupNotFound", |it| {
        it.db_security_groups("none")
    }),
    ("InvalidParameterValue", |it| {
        it.vpc_security_group_ids("sg-none")
    }),
    ("CertificateNotFound", |it| {
        it.ca_certificate_identifier("none")
    }),
    ("DomainNotFoundFault", |it| it.domain("none")),
    ("DBClusterNotFoundFault", |it| {
        it.db_cluster_identifier("none")
    }),
    ("KMSKeyNotAccessibleFault", |it| {
        it.storage_encrypted(true).kms_key_id("alias/none")
    }),
    ("InvalidParameterCombination", |it| {
        it.kms_key_id("alias/aws/rds")
    }),
    ("InvalidParameterCombination", |it| {
        let it = it.engine("mysql").engine_version("5.7");
        it.engine_lifecycle_support("open-source-rds-extended-support-disabled")
    }),
];

#[tokio::test]
async fn a_creation_that_violates_a_constraint_is_rejected_with_the_documented_code() {
    let (simulator, client) = start().await;
    simulator.set_capacity("db.r6g.large", false);
    simulator.remove_storage_type("io2");
    available(&simulator, &client, "taken").await;
    let tag = |key: &str| Tag::builder().key(key).value("a").build();
    for (expected, change) in REJECTED {
        let result = change(creation(&client, "orders")).send().await;
        let message = format!("{result:?}");
        assert_eq!(outcome(result), *expected, "{message}");
    }
    for key in ["aws:owner", "a*b"] {
        let result = creation(&client, "orders").tags(tag(key)).send().await;
        assert_eq!(outcome(result), "InvalidParameterValue", "{key}");
    }
    let many = (0..51)
        .map(|number| tag(&format!("key-{number}")))
        .collect();
    let result = creation(&client, "orders")
        .set_tags(Some(many))
        .send()
        .await;
    assert_eq!(outcome(result), "InvalidParameterValue");
    assert_eq!(simulator.instance_ids(), ["taken"]);
}

#[tokio::test]
async fn quotas_limit_the_instances_and_their_storage() {
    let (simulator, client) = start().await;
    simulator.set_quotas(|quotas| {
        quotas.instances = 2;
        quotas.storage = 250;
    });
    available(&simulator, &client, "a").await;
    let large = creation(&client, "b").allocated_storage(200).send().await;
    assert_eq!(outcome(large), "StorageQuotaExceeded");
    available(&simulator, &client, "b").await;
    let third = creation(&client, "c").send().await;
    assert_eq!(outcome(third), "InstanceQuotaExceeded");
    let grown = client.modify_db_instance().db_instance_identifier("a");
    let grown = grown.allocated_storage(200).send().await;
    assert_eq!(outcome(grown), "StorageQuotaExceeded");
    settle(&simulator);
}
