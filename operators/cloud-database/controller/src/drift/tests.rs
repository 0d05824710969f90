use super::*;
use aws_sdk_rds::types::{
    DbSubnetGroup, Endpoint, MasterUserSecret, PendingModifiedValues, VpcSecurityGroupMembership,
};
use lockstep_cloud_database_api::{
    Backup, Credentials, DeletionPolicy, Encryption, Engine, ManagementPolicy, Network, Storage,
    StorageType,
};

fn spec() -> CloudDatabaseSpec {
    CloudDatabaseSpec {
        management_policy: ManagementPolicy::Manage,
        adopt: None,
        restore_from: None,
        replica_of: None,
        engine: Engine::Postgres,
        engine_version: Some("16".to_owned()),
        instance_class: "db.t4g.micro".to_owned(),
        storage: Storage {
            storage_type: StorageType::Gp3,
            size_gib: 100,
            max_size_gib: None,
            iops: None,
            throughput_mibps: None,
        },
        database_name: None,
        credentials: Credentials {
            username: Some("app".to_owned()),
            secret_name: Some("s".to_owned()),
            ..Credentials::default()
        },
        connection_secret: None,
        multi_az: None,
        apply_changes: ApplyChanges::Immediately,
        backup: Backup::default(),
        maintenance_window: None,
        port: Some(5432),
        network: Network::default(),
        encryption: Encryption::default(),
        deletion_protection: None,
        deletion_policy: DeletionPolicy::Snapshot,
        tags: Default::default(),
    }
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
    super::between(spec, when, instance, enforced, &AppliedStorage::default())
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
        assert_eq!(change.engine_version.as_deref(), Some("16.4"));
    }
    spec.engine_version = Some("17".to_owned());
    let waits = between(&spec, &upgraded("17.2"), &[]);
    assert_eq!(waits.engine_version, None);
    spec.apply_changes = ApplyChanges::Immediately;
    let change = between(&spec, &upgraded("17.2"), &[]);
    assert_eq!(change.engine_version.as_deref(), Some("17"));
}

#[test]
fn a_version_with_a_suffix_of_rds_is_the_version() {
    let mut spec = spec();
    for (wanted, running) in [("17.2", "17.2-R1"), ("5.7.44", "5.7.44-rds.20240408")] {
        spec.engine_version = Some(wanted.to_owned());
        let instance = instance().engine_version(running).build();
        assert_eq!(between(&spec, &instance, &[]).engine_version, None);
    }
}

#[test]
fn an_exact_version_is_not_upgraded_automatically() {
    let automatic = instance().auto_minor_version_upgrade(true).build();
    let mut spec = spec();
    assert!(between(&spec, &automatic, &[]).is_empty());
    spec.engine_version = Some("16.4".to_owned());
    let change = between(&spec, &automatic, &[]);
    assert_eq!(change.auto_minor_version_upgrade, Some(false));
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
    assert_eq!(between(&spec, &instance().build(), &[]).port, Some(5_433));
    spec.apply_changes = ApplyChanges::MaintenanceWindow;
    assert_eq!(between(&spec, &instance().build(), &[]).port, None);
    let differences = unrepairable(&spec, &instance().build(), &[]);
    assert!(differences.join("").contains("5433"), "{differences:?}");
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

    let enforced_later = enforced(&spec, &made_before, &ENFORCED_AT_CREATION);
    assert_eq!(enforced_later, ENFORCED_AT_CREATION);
    let change = between(&spec, &made_before, &enforced_later);
    assert_eq!(change.publicly_accessible, Some(false));
    assert_eq!(change.copy_tags_to_snapshot, Some(true));
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
    assert_eq!(agreed, ENFORCED_AT_CREATION);
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
        between(&spec, &instance, &[]).security_groups
    };
    assert_eq!(groups_to_set(&[]), None);
    assert_eq!(groups_to_set(&["sg-2", "sg-1"]), None);
    assert_eq!(groups_to_set(&["sg-1"]), Some(vec!["sg-1".to_owned()]));
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
