use super::*;
use aws_sdk_rds::types::{
    DbParameterGroupStatus, DbSubnetGroup, Endpoint, MasterUserSecret, OptionGroupMembership,
    PendingCloudwatchLogsExports, PendingModifiedValues, VpcSecurityGroupMembership,
};
use lockstep_cloud_database_api::EnhancedMonitoring;
use serde_json::{Value, json};

use crate::settings::monitoring::{Enhanced, LogExports, LogExportsChange};
use crate::settings::{
    AutoMinorVersionUpgrade, CopyTagsToSnapshot, EngineVersion, Port, PubliclyAccessible,
    SecurityGroups, Upgrade, not_allowed, waiting_for_restart,
};

fn spec() -> CloudDatabaseSpec {
    let spec = json!({
        "engine": "postgres",
        "engineVersion": "16",
        "instanceClass": "db.t4g.micro",
        "storage": {"sizeGib": 100},
        "credentials": {"username": "app", "secretName": "s"},
        "port": 5432,
    });
    serde_json::from_value(spec).expect("a spec")
}

/// Returns the spec with these fields.
fn spec_with(fields: &Value) -> CloudDatabaseSpec {
    let mut all = serde_json::to_value(spec()).expect("JSON");
    for (name, value) in fields.as_object().expect("fields") {
        all[name] = value.clone();
    }
    serde_json::from_value(all).expect("a spec")
}

fn instance() -> aws_sdk_rds::types::builders::DbInstanceBuilder {
    DbInstance::builder()
        .db_instance_class("db.t4g.micro")
        .storage_type("gp3")
        .allocated_storage(100)
        .engine_version("16.4")
        .multi_az(false)
        .backup_retention_period(7)
        .endpoint(Endpoint::builder().address("h").port(5432).build())
        .deletion_protection(false)
}

fn between(spec: &CloudDatabaseSpec, instance: &DbInstance, enforced: &[&str]) -> Modification {
    let when = spec.apply_changes;
    super::between(spec, when, instance, enforced, &Record::default())
}

fn upgrade(version: &str, is_major: bool) -> Upgrade {
    let version = version.to_owned();
    Upgrade { version, is_major }
}

#[test]
fn the_key_of_a_managed_secret_is_compared_if_it_is_no_alias() {
    let key = "arn:aws:kms:eu-central-1:1:key/1234";
    let secret = MasterUserSecret::builder().kms_key_id(key).build();
    let instance = instance().master_user_secret(secret).build();
    let is_other = |wanted: Option<&str>| other_secret_key(wanted, &instance).is_some();
    for wanted in [None, Some(key), Some("1234"), Some("alias/databases")] {
        assert!(!is_other(wanted), "{wanted:?}");
    }
    assert!(is_other(Some("234")));
    assert!(is_other(Some("arn:aws:kms:eu-central-1:1:key/5678")));
}

#[test]
fn an_instance_that_matches_the_spec_needs_no_modification() {
    assert!(between(&spec(), &instance().build(), &[]).is_empty());
}

#[test]
fn only_fields_that_differ_are_modified() {
    let mut spec = spec();
    spec.multi_az = Some(false);
    let other = instance()
        .db_instance_class("db.m5.large")
        .multi_az(true)
        .build();
    let change = between(&spec, &other, &[]);
    assert_eq!(change.fields(), ["instanceClass", "multiAz"]);
}

#[test]
fn fields_that_the_spec_leaves_open_are_left_alone() {
    let safer = instance()
        .multi_az(true)
        .backup_retention_period(35)
        .deletion_protection(true)
        .build();
    assert!(between(&spec(), &safer, &[]).is_empty());
    let mut explicit = spec();
    explicit.multi_az = Some(false);
    explicit.backup.retention_days = Some(7);
    explicit.deletion_protection = Some(false);
    let change = between(&explicit, &safer, &[]);
    assert_eq!(
        change.fields(),
        ["multiAz", "backup.retentionDays", "deletionProtection"]
    );
}

#[test]
fn storage_that_rds_has_increased_is_not_modified() {
    let mut spec = spec();
    spec.storage.max_size_gib = Some(500);
    let grown = instance()
        .allocated_storage(300)
        .max_allocated_storage(500)
        .build();
    assert!(between(&spec, &grown, &[]).is_empty());
}

#[test]
fn a_pending_change_is_requested_again_unless_it_is_to_wait() {
    let pending = PendingModifiedValues::builder()
        .db_instance_class("db.t4g.micro")
        .build();
    let instance = instance()
        .db_instance_class("db.m5.large")
        .pending_modified_values(pending)
        .build();
    let mut spec = spec();
    assert_eq!(between(&spec, &instance, &[]).fields(), ["instanceClass"]);
    spec.apply_changes = ApplyChanges::MaintenanceWindow;
    assert!(between(&spec, &instance, &[]).is_empty());
}

#[test]
fn a_pending_upgrade_that_the_spec_does_not_name_is_taken_back() {
    let upgraded = |pending: &str| {
        let pending = PendingModifiedValues::builder().engine_version(pending);
        instance().pending_modified_values(pending.build()).build()
    };
    let mut spec = spec();
    for when in [ApplyChanges::Immediately, ApplyChanges::MaintenanceWindow] {
        spec.apply_changes = when;
        let change = between(&spec, &upgraded("17.2"), &[]);
        assert_eq!(change.get::<EngineVersion>(), Some(&upgrade("16.4", false)));
    }
    // One that the spec names, and does not allow.
    spec.engine_version = Some("17".to_owned());
    let change = between(&spec, &upgraded("17.2"), &[]);
    assert_eq!(change.get::<EngineVersion>(), Some(&upgrade("16.4", false)));
    spec.allow_major_version_upgrade = Some("17".to_owned());
    spec.apply_changes = ApplyChanges::MaintenanceWindow;
    let waits = between(&spec, &upgraded("17.2"), &[]);
    assert_eq!(waits.get::<EngineVersion>(), None);
    spec.apply_changes = ApplyChanges::Immediately;
    let change = between(&spec, &upgraded("17.2"), &[]);
    assert_eq!(change.get::<EngineVersion>(), Some(&upgrade("17", true)));
}

#[test]
fn a_version_with_a_suffix_of_rds_is_the_version() {
    let mut spec = spec();
    for (wanted, running) in [("17.2", "17.2-R1"), ("5.7.44", "5.7.44-rds.20240408")] {
        spec.engine_version = Some(wanted.to_owned());
        let instance = instance().engine_version(running).build();
        assert_eq!(between(&spec, &instance, &[]).get::<EngineVersion>(), None);
    }
}

#[test]
fn an_exact_version_is_not_upgraded_automatically() {
    let automatic = instance().auto_minor_version_upgrade(true).build();
    let mut spec = spec();
    assert!(between(&spec, &automatic, &[]).is_empty());
    spec.engine_version = Some("16.4".to_owned());
    let change = between(&spec, &automatic, &[]);
    assert_eq!(change.get::<AutoMinorVersionUpgrade>(), Some(&false));
    spec.auto_minor_version_upgrade = Some(true);
    assert!(between(&spec, &automatic, &[]).is_empty());
}

#[test]
fn windows_are_compared_without_case() {
    let mut spec = spec();
    spec.maintenance_window = Some("Sun:05:00-Sun:06:00".to_owned());
    let same = instance().preferred_maintenance_window("sun:05:00-sun:06:00");
    assert!(between(&spec, &same.build(), &[]).is_empty());
    let other = instance().preferred_maintenance_window("mon:05:00-mon:06:00");
    let change = between(&spec, &other.build(), &[]);
    assert_eq!(change.fields(), ["maintenanceWindow"]);
}

#[test]
fn the_port_does_not_change_while_changes_wait() {
    let mut spec = spec();
    spec.port = Some(5_433);
    assert_eq!(
        between(&spec, &instance().build(), &[]).get::<Port>(),
        Some(&5_433)
    );
    spec.apply_changes = ApplyChanges::MaintenanceWindow;
    assert_eq!(between(&spec, &instance().build(), &[]).get::<Port>(), None);
    let differences = unrepairable(&spec, &instance().build(), &[]);
    assert!(differences.join("").contains("5433"), "{differences:?}");
}

#[test]
fn another_key_or_database_name_is_reported() {
    let actual = instance().db_name("stock");
    let actual = actual.kms_key_id("arn:aws:kms:eu-central-1:123456789012:key/a");
    let differences = |key: &str, name: &str| {
        let fields = json!({"encryption": {"kmsKey": key}, "databaseName": name});
        immutable(&spec_with(&fields), &actual.clone().build()).join("; ")
    };
    assert_eq!(differences("a", "stock"), "");
    assert_eq!(
        differences("alias/a", "stock"),
        "",
        "an alias is not resolved"
    );
    assert!(differences("b", "stock").contains("KMS key"));
    assert!(differences("a", "shop").contains("'stock'"));
}

#[test]
fn versions_are_compared_by_component() {
    let mut spec = spec();
    spec.engine_version = Some("16.10".to_owned());
    let change = between(&spec, &instance().engine_version("16.1").build(), &[]);
    assert_eq!(change.fields(), ["engineVersion"]);
}

#[test]
fn tags_are_added_and_corrected_and_other_tags_are_kept() {
    let mut spec = spec();
    spec.tags = [("team", "shop"), ("stage", "prod")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build();
    let instance = instance()
        .tag_list(tag("team", "stock"))
        .tag_list(tag("stage", "prod"))
        .tag_list(tag("cost", "1"));
    assert_eq!(
        missing_tags(spec.tags, instance.build().tag_list()),
        [("team".to_owned(), "shop".to_owned())].into()
    );
}

#[test]
fn a_version_that_rds_has_raised_is_reported_and_not_lowered() {
    let mut spec = spec();
    spec.engine_version = Some("16.4".to_owned());
    let raised = instance().engine_version("16.6").build();
    assert!(between(&spec, &raised, &[]).is_empty());
    assert_eq!(
        unrepairable(&spec, &raised, &[]),
        ["it runs version 16.6 and cannot be downgraded to 16.4"]
    );
}

#[test]
fn a_field_with_a_secure_default_is_enforced_only_if_it_has_matched_the_spec_before() {
    let spec = spec();
    let made_before = instance()
        .publicly_accessible(true)
        .copy_tags_to_snapshot(false)
        .storage_encrypted(false)
        .build();
    let enforced_then = enforced(&spec, &made_before, &[]);
    assert_eq!(enforced_then, [""; 0]);
    assert!(between(&spec, &made_before, &enforced_then).is_empty());
    let expected = unrepairable(&spec, &made_before, &enforced_then).join("; ");
    for part in [
        "publicly accessible",
        "do not get its tags",
        "not encrypted",
    ] {
        assert!(expected.contains(part), "{expected}");
    }

    let recorded = enforced_at_creation().into_iter().map(String::from);
    let recorded: Vec<_> = recorded.collect();
    let enforced_later = enforced(&spec, &made_before, &recorded);
    assert_eq!(enforced_later, enforced_at_creation());
    let change = between(&spec, &made_before, &enforced_later);
    assert_eq!(change.get::<PubliclyAccessible>(), Some(&false));
    assert_eq!(change.get::<CopyTagsToSnapshot>(), Some(&true));
    let expected = unrepairable(&spec, &made_before, &enforced_later);
    assert_eq!(
        expected.len(),
        1,
        "encryption cannot be changed: {expected:?}"
    );

    let as_the_spec_says = instance()
        .publicly_accessible(false)
        .copy_tags_to_snapshot(true)
        .build();
    let agreed = enforced(&spec, &as_the_spec_says, &[]);
    assert_eq!(agreed, enforced_at_creation());
}

#[test]
fn security_groups_are_changed_only_if_the_spec_lists_some() {
    let group = |id: &str, status: &str| {
        VpcSecurityGroupMembership::builder()
            .vpc_security_group_id(id)
            .status(status)
            .build()
    };
    let instance = instance()
        .vpc_security_groups(group("sg-1", "active"))
        .vpc_security_groups(group("sg-2", "adding"))
        .vpc_security_groups(group("sg-3", "removing"))
        .build();
    let groups_to_set = |groups: &[&str]| {
        let mut spec = spec();
        spec.network.security_groups = groups.iter().map(|id| (*id).to_owned()).collect();
        between(&spec, &instance, &[])
            .get::<SecurityGroups>()
            .cloned()
    };
    assert_eq!(groups_to_set(&[]), None);
    assert_eq!(groups_to_set(&["sg-2", "sg-1"]), None);
    assert_eq!(groups_to_set(&["sg-1"]), Some(["sg-1".to_owned()].into()));
}

#[test]
fn subnet_group_names_are_compared_without_case() {
    let group = DbSubnetGroup::builder().db_subnet_group_name("databases");
    let instance = instance().db_subnet_group(group.build()).build();
    let expected = |name: &str| {
        let mut spec = spec();
        spec.network.subnet_group = Some(name.to_owned());
        unrepairable(&spec, &instance, &[])
    };
    assert_eq!(expected("Databases"), [""; 0]);
    assert_eq!(expected("others").len(), 1);
}

#[test]
fn an_upgrade_to_another_major_version_needs_consent_to_this_version() {
    let running = instance().build();
    let mut spec = spec_with(&json!({"engineVersion": "17"}));
    assert!(between(&spec, &running, &[]).is_empty());
    let missing = not_allowed(&spec, &running).expect("what to do");
    assert!(
        missing.contains("`spec.allowMajorVersionUpgrade` to '17'"),
        "{missing}"
    );
    spec.allow_major_version_upgrade = Some("18".to_owned());
    assert!(between(&spec, &running, &[]).is_empty());
    spec.allow_major_version_upgrade = Some("17".to_owned());
    assert_eq!(not_allowed(&spec, &running), None);
    let change = between(&spec, &running, &[]);
    assert_eq!(change.get::<EngineVersion>(), Some(&upgrade("17", true)));
    // A minor one needs none.
    let minor = spec_with(&json!({"engineVersion": "16.10"}));
    let change = between(&minor, &running, &[]);
    assert_eq!(
        change.get::<EngineVersion>(),
        Some(&upgrade("16.10", false))
    );
    assert_eq!(not_allowed(&minor, &running), None);
}

/// Settings that the spec leaves open by default, and their names in a modification.
fn optional() -> Value {
    json!({
        "engineLifecycleSupport": "open-source-rds-extended-support-disabled",
        "parameterGroup": "Tuned",
        "optionGroup": "audited",
        "caCertificate": "rds-ca-rsa4096-g1",
        "iamAuthentication": true,
        "dedicatedLogVolume": true,
        "autoMinorVersionUpgrade": false,
        "network": {"networkType": "DUAL"},
        "monitoring": {
            "enhanced": {"intervalSeconds": 60, "roleArn": "arn:aws:iam::123456789012:role/m"},
            "performanceInsights": {"enabled": true, "retentionDays": 465},
            "databaseInsights": "Advanced",
            "logExports": ["postgresql"],
        },
    })
}

const OPTIONAL: [&str; 12] = [
    "autoMinorVersionUpgrade",
    "engineLifecycleSupport",
    "parameterGroup",
    "optionGroup",
    "caCertificate",
    "iamAuthentication",
    "network.networkType",
    "dedicatedLogVolume",
    "monitoring.enhanced",
    "monitoring.performanceInsights.enabled",
    "monitoring.databaseInsights",
    "monitoring.logExports",
];

fn parameter_group(name: &str, status: &str) -> DbParameterGroupStatus {
    DbParameterGroupStatus::builder()
        .db_parameter_group_name(name)
        .parameter_apply_status(status)
        .build()
}

fn option_group(name: &str, status: &str) -> OptionGroupMembership {
    OptionGroupMembership::builder()
        .option_group_name(name)
        .status(status)
        .build()
}

#[test]
fn settings_that_the_spec_names_are_changed_and_kept_and_others_are_left_alone() {
    let plain = || {
        instance()
            .auto_minor_version_upgrade(true)
            .network_type("IPV4")
            .ca_certificate_identifier("rds-ca-rsa2048-g1")
            .db_parameter_groups(parameter_group("default.postgres16", "in-sync"))
            .option_group_memberships(option_group("default:postgres-16", "in-sync"))
    };
    let wanted = spec_with(&optional());
    assert_eq!(between(&wanted, &plain().build(), &[]).fields(), OPTIONAL);
    let tuned = instance()
        .auto_minor_version_upgrade(false)
        .engine_lifecycle_support("open-source-rds-extended-support-disabled")
        .network_type("DUAL")
        .ca_certificate_identifier("rds-ca-rsa4096-g1")
        .db_parameter_groups(parameter_group("tuned", "in-sync"))
        .option_group_memberships(option_group("audited", "in-sync"))
        .iam_database_authentication_enabled(true)
        .dedicated_log_volume(true)
        .monitoring_interval(60)
        .monitoring_role_arn("arn:aws:iam::123456789012:role/m")
        .performance_insights_enabled(true)
        .performance_insights_retention_period(465)
        .database_insights_mode("advanced".into())
        .enabled_cloudwatch_logs_exports("postgresql")
        .build();
    assert!(between(&wanted, &tuned, &[]).is_empty());
    assert!(between(&spec(), &tuned, &[]).is_empty(), "left alone");
}

#[test]
fn a_setting_that_waits_is_not_requested_again() {
    let mut wanted = spec_with(&optional());
    wanted.apply_changes = ApplyChanges::MaintenanceWindow;
    let exports = PendingCloudwatchLogsExports::builder().log_types_to_enable("postgresql");
    let pending = PendingModifiedValues::builder()
        .ca_certificate_identifier("rds-ca-rsa4096-g1")
        .iam_database_authentication_enabled(true)
        .dedicated_log_volume(true)
        .pending_cloudwatch_logs_exports(exports.build())
        .build();
    let waiting = instance()
        .pending_modified_values(pending)
        .option_group_memberships(option_group("default:postgres-16", "in-sync"))
        .option_group_memberships(option_group("audited", "pending-maintenance-apply"))
        .build();
    let fields = between(&wanted, &waiting, &[]).fields();
    for field in [
        "caCertificate",
        "iamAuthentication",
        "optionGroup",
        "dedicatedLogVolume",
        "monitoring.logExports",
    ] {
        assert!(!fields.contains(&field), "{fields:?}");
        assert!(pending_of(&waiting).contains(&field.to_owned()), "{field}");
    }
    wanted.apply_changes = ApplyChanges::Immediately;
    let fields = between(&wanted, &waiting, &[]).fields();
    for field in ["caCertificate", "iamAuthentication", "optionGroup"] {
        assert!(fields.contains(&field), "{fields:?}");
    }
    assert!(
        !fields.contains(&"dedicatedLogVolume"),
        "it needs a restart"
    );
}

fn pending_of(instance: &DbInstance) -> Vec<String> {
    super::pending(instance)
}

#[test]
fn logs_are_added_and_removed_and_a_role_is_sent_with_its_interval() {
    let exporting = instance()
        .enabled_cloudwatch_logs_exports("upgrade")
        .monitoring_interval(30)
        .monitoring_role_arn("arn:aws:iam::123456789012:role/m")
        .build();
    let monitoring = |enhanced: Value| {
        let logs = json!({"enhanced": enhanced, "logExports": ["postgresql"]});
        between(&spec_with(&json!({"monitoring": logs})), &exporting, &[])
    };
    let off = monitoring(json!({"intervalSeconds": 0}));
    let expected = LogExportsChange {
        enable: vec!["postgresql".to_owned()],
        disable: vec!["upgrade".to_owned()],
    };
    assert_eq!(off.get::<LogExports>(), Some(&expected));
    let expected = EnhancedMonitoring {
        interval_seconds: 0,
        role_arn: None,
    };
    assert_eq!(off.get::<Enhanced>(), Some(&expected));
    let role = "arn:aws:iam::123456789012:role/other";
    let other = monitoring(json!({"intervalSeconds": 30, "roleArn": role}));
    let expected = EnhancedMonitoring {
        interval_seconds: 30,
        role_arn: Some(role.to_owned()),
    };
    assert_eq!(other.get::<Enhanced>(), Some(&expected));
}

#[test]
fn what_waits_for_a_restart_is_reported_if_the_spec_names_it() {
    let waiting = instance()
        .db_parameter_groups(parameter_group("tuned", "pending-reboot"))
        .build();
    assert!(waiting_for_restart(&spec(), &waiting).is_empty());
    let wanted = spec_with(&json!({"parameterGroup": "tuned"}));
    let notes = waiting_for_restart(&wanted, &waiting);
    assert!(
        notes[0].contains("'tuned'") && notes[0].contains("reboot"),
        "{notes:?}"
    );
}

#[test]
fn a_zone_and_a_key_that_differ_are_reported() {
    let actual = instance()
        .availability_zone("eu-central-1b")
        .performance_insights_enabled(true)
        .performance_insights_kms_key_id("arn:aws:kms:eu-central-1:1:key/a")
        .build();
    let wanted = |key: &str| {
        let insights = json!({"performanceInsights": {"enabled": true, "kmsKey": key}});
        let zone = json!({"availabilityZone": "eu-central-1a"});
        spec_with(&json!({"monitoring": insights, "network": zone}))
    };
    let differences = |key: &str| unrepairable(&wanted(key), &actual, &[]);
    assert_eq!(differences("b").len(), 2, "{:?}", differences("b"));
    assert!(differences("b")[0].contains("not moved to 'eu-central-1a'"));
    // An alias cannot be compared with the ARN.
    for key in ["a", "arn:aws:kms:eu-central-1:1:key/a", "alias/insights"] {
        assert_eq!(differences(key).len(), 1, "{key}");
    }
}

#[test]
fn an_option_group_that_rds_could_not_apply_is_requested_again() {
    let mut wanted = spec_with(&optional());
    for when in [ApplyChanges::Immediately, ApplyChanges::MaintenanceWindow] {
        wanted.apply_changes = when;
        let failed = instance()
            .option_group_memberships(option_group("audited", "failed"))
            .build();
        let fields = between(&wanted, &failed, &[]).fields();
        assert!(fields.contains(&"optionGroup"), "{fields:?}");
    }
}

#[test]
fn a_parameter_group_waits_with_the_upgrade_that_it_was_requested_with() {
    let wanted = spec_with(&optional());
    let requests_group = |pending: Option<&str>| {
        let pending =
            PendingModifiedValues::builder().set_engine_version(pending.map(String::from));
        let instance = instance()
            .engine_version("16.4")
            .db_parameter_groups(parameter_group("default.postgres16", "in-sync"))
            .pending_modified_values(pending.build());
        let fields = between(&wanted, &instance.build(), &[]).fields();
        fields.contains(&"parameterGroup")
    };
    assert!(requests_group(None));
    assert!(requests_group(Some("16.6")), "of the same major version");
    assert!(!requests_group(Some("17.2")));
}
