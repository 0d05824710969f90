//! `ModifyDBInstance`: states, pending modifications, and errors.

use std::time::Duration;

use aws_sdk_rds::Client;
use aws_sdk_rds::operation::modify_db_instance::builders::ModifyDBInstanceFluentBuilder as Modification;
use aws_sdk_rds::types::{CloudwatchLogsExportConfiguration, DatabaseInsightsMode, DbInstance};
use rds_simulator::{End, Simulator};

use crate::client::{available, creation, describe, outcome, settle, start, status};

fn modification(client: &Client, id: &str) -> Modification {
    client.modify_db_instance().db_instance_identifier(id)
}

fn pending_class(instance: &DbInstance) -> Option<&str> {
    instance.pending_modified_values()?.db_instance_class()
}

/// Returns the states through which an instance goes, each once.
async fn states(simulator: &Simulator, client: &Client, id: &str) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..20 {
        let status = status(client, id).await;
        if seen.last() != Some(&status) {
            seen.push(status);
        }
        simulator.advance(Duration::from_millis(5));
    }
    seen
}

#[tokio::test]
async fn an_immediate_modification_is_pending_until_it_is_applied() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let request = modification(&client, "orders").apply_immediately(true);
    let answer = request.db_instance_class("db.m6g.large").send().await;
    let answer = answer.expect("an answer");
    let answer = answer.db_instance().expect("an instance");
    assert_eq!(answer.db_instance_status(), Some("available"));
    assert_eq!(answer.db_instance_class(), Some("db.t4g.micro"));
    assert_eq!(pending_class(answer), Some("db.m6g.large"));
    let states = states(&simulator, &client, "orders").await;
    assert_eq!(states, ["available", "modifying", "available"]);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_class(), Some("db.m6g.large"));
    assert_eq!(pending_class(&instance), None);
}

#[tokio::test]
async fn a_modification_waits_for_the_maintenance_window() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let class = modification(&client, "orders").db_instance_class("db.m6g.large");
    class.send().await.expect("an answer");
    simulator.advance(Duration::from_mins(1));
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_status(), Some("available"));
    assert_eq!(pending_class(&instance), Some("db.m6g.large"));
    // Another modification that is applied as soon as possible does not apply the pending one.
    let access = modification(&client, "orders").publicly_accessible(false);
    access.send().await.expect("an answer");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.publicly_accessible(), Some(false));
    assert_eq!(pending_class(&instance), Some("db.m6g.large"));
    simulator.advance(Duration::from_hours(7 * 24));
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_class(), Some("db.m6g.large"));
    assert_eq!(pending_class(&instance), None);
}

#[tokio::test]
async fn an_immediate_modification_applies_all_pending_ones() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let class = modification(&client, "orders").db_instance_class("db.m6g.large");
    class.send().await.expect("an answer");
    let request = modification(&client, "orders").multi_az(true);
    request
        .apply_immediately(true)
        .send()
        .await
        .expect("an answer");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.multi_az(), Some(true));
    assert_eq!(instance.db_instance_class(), Some("db.m6g.large"));
}

#[tokio::test]
async fn the_value_in_force_takes_a_pending_modification_back() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    for class in ["db.m6g.large", "db.t4g.micro"] {
        let request = modification(&client, "orders").db_instance_class(class);
        request.send().await.expect("an answer");
    }
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(pending_class(&instance), None);
    assert_eq!(instance.db_instance_class(), Some("db.t4g.micro"));
}

#[tokio::test]
async fn storage_grows_once_in_six_hours() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let grow = async |size: i32| {
        let request = modification(&client, "orders").allocated_storage(size);
        outcome(request.apply_immediately(true).send().await)
    };
    assert_eq!(grow(99).await, "InvalidParameterCombination");
    assert_eq!(grow(109).await, "InvalidParameterCombination");
    assert_eq!(grow(200).await, "");
    let states = states(&simulator, &client, "orders").await;
    assert_eq!(
        states,
        [
            "available",
            "modifying",
            "storage-optimization",
            "available"
        ]
    );
    assert_eq!(grow(300).await, "InvalidParameterCombination");
    simulator.advance(Duration::from_hours(6));
    simulator.set_timing(|timing| {
        let optimization = "storage-optimization".to_owned();
        timing.states.insert(optimization, Duration::from_hours(12));
    });
    assert_eq!(grow(300).await, "");
    settle(&simulator);
    // Other modifications do not wait for the optimization of the storage.
    let request = modification(&client, "orders").multi_az(true);
    request
        .apply_immediately(true)
        .send()
        .await
        .expect("an answer");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.db_instance_status(), Some("storage-optimization"));
    assert_eq!(instance.multi_az(), Some(true));
    assert_eq!(instance.allocated_storage(), Some(300));
    // The next growth waits for the end of the optimization, although six hours have passed.
    simulator.advance(Duration::from_hours(7));
    assert_eq!(grow(350).await, "InvalidParameterCombination");
    simulator.advance(Duration::from_hours(6));
    assert_eq!(grow(350).await, "");
}

#[tokio::test]
async fn a_new_password_is_pending_and_then_in_force() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let request = modification(&client, "orders").master_user_password("battery-staple");
    let answer = request.send().await.expect("an answer");
    let pending = answer
        .db_instance()
        .and_then(|it| it.pending_modified_values());
    assert_eq!(
        pending.and_then(|it| it.master_user_password()),
        Some("****")
    );
    assert_eq!(
        simulator.password("orders").as_deref(),
        Some("correct-horse")
    );
    let states = states(&simulator, &client, "orders").await;
    assert_eq!(
        states,
        ["available", "resetting-master-credentials", "available"]
    );
    assert_eq!(
        simulator.password("orders").as_deref(),
        Some("battery-staple")
    );
    let call = &simulator.calls("ModifyDBInstance")[0];
    assert_eq!(call.parameters["MasterUserPassword"], "***");
}

#[tokio::test]
async fn some_settings_are_applied_at_once_and_some_in_states_of_their_own() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let request = modification(&client, "orders").deletion_protection(true);
    let request = request
        .copy_tags_to_snapshot(true)
        .backup_retention_period(7);
    request
        .max_allocated_storage(1_000)
        .send()
        .await
        .expect("an answer");
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.deletion_protection(), Some(true));
    assert_eq!(instance.copy_tags_to_snapshot(), Some(true));
    assert_eq!(instance.backup_retention_period(), Some(7));
    assert_eq!(instance.max_allocated_storage(), Some(1_000));
    // A ceiling that equals the size ends autoscaling.
    let request = modification(&client, "orders").max_allocated_storage(100);
    request.send().await.expect("an answer");
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.max_allocated_storage(), None);

    let exports = CloudwatchLogsExportConfiguration::builder().enable_log_types("postgresql");
    let request = modification(&client, "orders").enable_iam_database_authentication(true);
    let request = request.cloudwatch_logs_export_configuration(exports.build());
    let request = request
        .monitoring_interval(60)
        .monitoring_role_arn("arn:aws:iam::1:role/a");
    let request = request
        .new_db_instance_identifier("billing")
        .apply_immediately(true);
    request.send().await.expect("an answer");
    let mut seen = states(&simulator, &client, "orders").await;
    seen.dedup();
    assert_eq!(
        seen,
        [
            "available",
            "configuring-log-exports",
            "configuring-enhanced-monitoring",
            "configuring-iam-database-auth",
            "renaming",
            "DBInstanceNotFound"
        ]
    );
    settle(&simulator);
    let instance = describe(&client, "billing").await.expect("the instance");
    assert_eq!(instance.enabled_cloudwatch_logs_exports(), ["postgresql"]);
    assert_eq!(instance.monitoring_interval(), Some(60));
    assert_eq!(instance.iam_database_authentication_enabled(), Some(true));
    let address = instance.endpoint().and_then(|it| it.address());
    assert!(address.is_some_and(|it| it.starts_with("billing.")));
}

#[tokio::test]
async fn disabled_backups_are_enabled_with_a_first_backup() {
    let (simulator, client) = start().await;
    let request = creation(&client, "orders").backup_retention_period(0);
    request.send().await.expect("an instance");
    settle(&simulator);
    let request = modification(&client, "orders").backup_retention_period(7);
    let answer = request
        .apply_immediately(true)
        .send()
        .await
        .expect("an answer");
    let pending = answer
        .db_instance()
        .and_then(|it| it.pending_modified_values());
    assert_eq!(pending.and_then(|it| it.backup_retention_period()), Some(7));
    let states = states(&simulator, &client, "orders").await;
    assert_eq!(
        states,
        ["available", "modifying", "backing-up", "available"]
    );
}

#[tokio::test]
async fn an_upgrade_needs_a_path_and_for_a_major_version_the_consent_of_the_caller() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.add_parameter_group("tuned", "postgres16");
    let upgrade = async |version: &str, allows_major: bool| {
        let request = modification(&client, "orders").engine_version(version);
        let request = request.allow_major_version_upgrade(allows_major);
        outcome(request.apply_immediately(true).send().await)
    };
    assert_eq!(upgrade("15.14", true).await, "InvalidParameterCombination");
    assert_eq!(upgrade("99", true).await, "InvalidParameterCombination");
    assert_eq!(upgrade("17", false).await, "InvalidParameterCombination");
    assert_eq!(upgrade("16.8", false).await, "");
    let seen = states(&simulator, &client, "orders").await;
    assert_eq!(seen, ["available", "upgrading", "available"]);
    // A parameter group of another family than that of the new version must be replaced.
    let request = modification(&client, "orders").db_parameter_group_name("tuned");
    request.send().await.expect("an answer");
    assert_eq!(upgrade("17", true).await, "InvalidParameterCombination");
    let request = modification(&client, "orders").engine_version("17");
    let request = request
        .allow_major_version_upgrade(true)
        .apply_immediately(true);
    let request = request.db_parameter_group_name("default.postgres17");
    request.send().await.expect("an answer");
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.engine_version(), Some("17.6"));
    // A major version does not lead back to an earlier minor one.
    assert_eq!(upgrade("17", false).await, "");
}

/// Change of a request.
type Change = fn(Modification) -> Modification;

#[tokio::test]
async fn a_modification_that_violates_a_constraint_is_rejected_with_the_documented_code() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    available(&simulator, &client, "taken").await;
    simulator.set_capacity("db.r6g.large", false);
    simulator.remove_storage_type("gp2");
    simulator.add_subnet_group("databases");
    let cases: &[(&str, Change)] = &[
        ("DBInstanceNotFound", |it| it.db_instance_identifier("none")),
        ("DBInstanceAlreadyExists", |it| {
            it.new_db_instance_identifier("TAKEN")
        }),
        ("InvalidParameterValue", |it| {
            it.new_db_instance_identifier("a--b")
        }),
        ("InvalidParameterValue", |it| it.db_instance_class("large")),
        ("InsufficientDBInstanceCapacity", |it| {
            it.db_instance_class("db.r6g.large")
        }),
        ("StorageTypeNotSupported", |it| it.storage_type("gp2")),
        ("InvalidParameterCombination", |it| it.storage_type("io1")),
        ("InvalidParameterCombination", |it| {
            it.storage_type("io1").iops(3_000)
        }),
        ("InvalidParameterCombination", |it| it.iops(3_001)),
        ("InvalidParameterCombination", |it| {
            it.max_allocated_storage(105)
        }),
        ("InvalidVPCNetworkStateFault", |it| {
            it.db_subnet_group_name("databases")
        }),
        ("DomainNotFoundFault", |it| it.domain("none")),
        ("InvalidParameterCombination", |it| {
            it.rotate_master_user_password(true)
        }),
        ("InvalidParameterCombination", |it| {
            it.master_user_secret_kms_key_id("alias/aws/secretsmanager")
        }),
        ("InvalidParameterCombination", |it| {
            let it = it.manage_master_user_password(true);
            it.master_user_password("battery-staple")
        }),
        ("InvalidParameterCombination", |it| {
            it.database_insights_mode(DatabaseInsightsMode::Advanced)
        }),
        ("InvalidParameterCombination", |it| it.engine("mysql")),
        ("InvalidParameterValue", |it| it.db_port_number(80)),
        ("InvalidParameterValue", |it| it.backup_retention_period(36)),
        ("InvalidParameterValue", |it| {
            it.preferred_maintenance_window("sun")
        }),
        ("InvalidParameterValue", |it| {
            it.master_user_password("a/bcdefgh")
        }),
        ("InvalidParameterCombination", |it| {
            it.monitoring_interval(60)
        }),
        ("InvalidParameterCombination", |it| {
            it.monitoring_role_arn("arn:aws:iam::123456789012:role/monitoring")
        }),
        ("InvalidParameterCombination", |it| {
            it.dedicated_log_volume(true)
        }),
        ("NetworkTypeNotSupported", |it| it.network_type("DUAL")),
        ("InvalidParameterValue", |it| {
            it.vpc_security_group_ids("sg-none")
        }),
        ("DBSecurityGroupNotFound", |it| {
            it.db_security_groups("none")
        }),
        ("DBParameterGroupNotFound", |it| {
            it.db_parameter_group_name("none")
        }),
        ("OptionGroupNotFoundFault", |it| {
            it.option_group_name("none")
        }),
        ("CertificateNotFound", |it| {
            it.ca_certificate_identifier("none")
        }),
        ("KMSKeyNotAccessibleFault", |it| {
            let it = it.enable_performance_insights(true);
            it.performance_insights_kms_key_id("alias/none")
        }),
    ];
    for (expected, change) in cases {
        let result = change(modification(&client, "orders")).send().await;
        let message = format!("{result:?}");
        assert_eq!(outcome(result), *expected, "{message}");
    }
}

#[tokio::test]
async fn a_modification_is_rejected_while_another_change_lasts() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    for state in [
        "modifying",
        "backing-up",
        "upgrading",
        "stopped",
        "deleting",
    ] {
        simulator.force_status("orders", state, End::Released);
        let request = modification(&client, "orders").multi_az(true);
        let request = request.send().await;
        assert_eq!(outcome(request), "InvalidDBInstanceState", "{state}");
    }
}

#[tokio::test]
async fn a_full_storage_takes_a_larger_size() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    simulator.force_status("orders", "storage-full", End::Released);
    let request = modification(&client, "orders")
        .multi_az(true)
        .apply_immediately(true);
    request.send().await.expect("an answer");
    settle(&simulator);
    assert_eq!(status(&client, "orders").await, "storage-full");
    let request = modification(&client, "orders").allocated_storage(200);
    request
        .apply_immediately(true)
        .send()
        .await
        .expect("an answer");
    settle(&simulator);
    assert_eq!(status(&client, "orders").await, "available");
}

#[tokio::test]
async fn the_values_in_force_modify_nothing() {
    let (simulator, client) = start().await;
    simulator.add_security_group("sg-2");
    let groups = || Some(vec!["sg-2".to_owned(), "sg-0d15ea5e0000000001".to_owned()]);
    let request = creation(&client, "orders").set_vpc_security_group_ids(groups());
    request.send().await.expect("an instance");
    settle(&simulator);
    let mut turned = groups();
    turned.as_mut().expect("groups").reverse();
    let request = modification(&client, "orders").set_vpc_security_group_ids(turned);
    let request = request
        .db_instance_class("db.t4g.micro")
        .allocated_storage(100);
    let request = request
        .enable_performance_insights(false)
        .multi_az(false)
        .engine_version("16");
    let request = request.db_parameter_group_name("default.postgres16");
    let request = request
        .db_subnet_group_name("default")
        .engine_version("16.4");
    request
        .apply_immediately(true)
        .send()
        .await
        .expect("an answer");
    let states = states(&simulator, &client, "orders").await;
    assert_eq!(states, ["available"]);
    let request =
        modification(&client, "orders").set_vpc_security_group_ids(Some(vec!["sg-2".to_owned()]));
    let answer = request.send().await.expect("an answer");
    let groups = answer
        .db_instance()
        .expect("an instance")
        .vpc_security_groups()
        .iter();
    let groups: Vec<_> = groups.filter_map(|it| it.status()).collect();
    assert_eq!(groups, ["active", "removing"]);
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(instance.vpc_security_groups().len(), 1);
}

#[tokio::test]
async fn rds_can_manage_the_password_in_a_secret() {
    let (simulator, client) = start().await;
    available(&simulator, &client, "orders").await;
    let progress = |instance: &DbInstance| {
        let secret = instance.master_user_secret()?;
        secret.secret_status().map(String::from)
    };
    let request = modification(&client, "orders").manage_master_user_password(true);
    let answer = request.apply_immediately(true).send().await;
    let answer = answer.expect("an answer");
    let instance = answer.db_instance().expect("an instance");
    assert_eq!(progress(instance).as_deref(), Some("creating"));
    assert_eq!(
        simulator.password("orders").as_deref(),
        Some("correct-horse")
    );
    settle(&simulator);
    let instance = describe(&client, "orders").await.expect("the instance");
    assert_eq!(progress(&instance).as_deref(), Some("active"));
    let first = simulator.password("orders");
    assert_ne!(first.as_deref(), Some("correct-horse"));
    let secret = async || {
        let instance = describe(&client, "orders").await.expect("the instance");
        let secret = instance.master_user_secret().cloned()?;
        secret.secret_arn
    };
    let arn = secret().await.expect("a secret");
    let key = modification(&client, "orders").master_user_secret_kms_key_id("alias/aws/rds");
    assert_eq!(outcome(key.send().await), "InvalidParameterCombination");
    assert!(
        arn.starts_with("arn:aws:secretsmanager:eu-central-1:123456789012:secret:rds!db-"),
        "{arn}"
    );
    let rotate = modification(&client, "orders").rotate_master_user_password(true);
    let answer = rotate.apply_immediately(true).send().await;
    let answer = answer.expect("an answer");
    let instance = answer.db_instance().expect("an instance");
    assert_eq!(progress(instance).as_deref(), Some("rotating"));
    let states = states(&simulator, &client, "orders").await;
    assert_eq!(
        states,
        ["available", "resetting-master-credentials", "available"]
    );
    assert_ne!(simulator.password("orders"), first);
    let back = || modification(&client, "orders").manage_master_user_password(false);
    assert_eq!(outcome(back().send().await), "InvalidParameterCombination");
    let back = back().master_user_password("battery-staple").send().await;
    assert_eq!(outcome(back), "");
    settle(&simulator);
    assert_eq!(secret().await, None);
    assert_eq!(
        simulator.password("orders").as_deref(),
        Some("battery-staple")
    );
}

#[tokio::test]
async fn a_log_volume_waits_for_a_reboot_and_an_option_group_for_the_window() {
    let (simulator, client) = start().await;
    simulator.add_option_group("audited");
    let request = creation(&client, "orders").storage_type("io1").iops(1_000);
    let request = request.allocated_storage(100);
    request.send().await.expect("an instance");
    settle(&simulator);
    let valid_till = |simulator: &Simulator| {
        let instance = simulator.instance("orders").expect("the instance");
        instance["CertificateDetails"]["ValidTill"].clone()
    };
    let certificate = valid_till(&simulator);
    let request = modification(&client, "orders").dedicated_log_volume(true);
    let request = request.apply_immediately(true);
    request.send().await.expect("an answer");
    let request = modification(&client, "orders").option_group_name("audited");
    request.send().await.expect("an answer");
    settle(&simulator);
    let reported = || simulator.instance("orders").expect("the instance");
    assert_eq!(reported()["DedicatedLogVolume"], false);
    assert_eq!(
        reported()["PendingModifiedValues"]["DedicatedLogVolume"],
        true
    );
    let groups = reported()["OptionGroupMemberships"].clone();
    assert_eq!(groups[1]["OptionGroupName"], "audited");
    assert_eq!(groups[1]["Status"], "pending-maintenance-apply");
    simulator.open_maintenance_window("orders");
    settle(&simulator);
    let groups = reported()["OptionGroupMemberships"].clone();
    assert_eq!(groups[0]["OptionGroupName"], "audited");
    assert_eq!(reported()["DedicatedLogVolume"], false);
    let reboot = client.reboot_db_instance().db_instance_identifier("orders");
    reboot.send().await.expect("an answer");
    settle(&simulator);
    assert_eq!(reported()["DedicatedLogVolume"], true);
    // The certificate is a new one only with another authority.
    assert_eq!(valid_till(&simulator), certificate);
    let request = modification(&client, "orders").ca_certificate_identifier("rds-ca-rsa4096-g1");
    let request = request.apply_immediately(true);
    request.send().await.expect("an answer");
    settle(&simulator);
    assert_ne!(valid_till(&simulator), certificate);
}

#[tokio::test]
async fn performance_insights_can_be_disabled_whatever_their_retention_is() {
    let (simulator, client) = start().await;
    let request = creation(&client, "orders").enable_performance_insights(true);
    let request = request.performance_insights_retention_period(93);
    request.send().await.expect("an instance");
    settle(&simulator);
    let disable = || modification(&client, "orders").enable_performance_insights(false);
    let with_retention = disable().performance_insights_retention_period(31);
    let result = with_retention.send().await;
    assert_eq!(outcome(result), "InvalidParameterCombination");
    disable().send().await.expect("an answer");
    settle(&simulator);
    let reported = simulator.instance("orders").expect("the instance");
    assert_eq!(reported["PerformanceInsightsEnabled"], false);
    assert!(reported["PerformanceInsightsRetentionPeriod"].is_null());
}
