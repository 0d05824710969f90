//! Drift: differences between an instance and the spec of its object.

mod difference;
mod engine_version;
mod groups;
mod monitoring;
mod settings;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues, Tag};
use lockstep_cloud_database_api::{ApplyChanges, CloudDatabaseSpec, compare_versions};

use crate::drift::difference::differs;
use crate::master_user::{MasterPassword, MasterUser};
use crate::modification::{
    COPY_TAGS_TO_SNAPSHOT, Modification, PASSWORD, PUBLICLY_ACCESSIBLE, storage,
};

use crate::recorded_instance::RecordedInstance;

pub(crate) use engine_version::not_allowed;
pub(crate) use groups::waiting_for_restart;

/// Fields that are enforced from the start, because the instance was created with the values of the spec.
pub(crate) const ENFORCED_AT_CREATION: [&str; 2] = [PUBLICLY_ACCESSIBLE, COPY_TAGS_TO_SNAPSHOT];

/// Returns the fields with a secure default that are enforced: those in which the instance matches the spec now or has
/// matched it before. If it never has, it was created without the default, and a change that no user requested could
/// disconnect its clients.
pub(crate) fn enforced(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    before: &[&str],
) -> Vec<&'static str> {
    let agreement = [
        (
            PUBLICLY_ACCESSIBLE,
            instance.publicly_accessible() == Some(spec.network.publicly_accessible),
        ),
        (
            COPY_TAGS_TO_SNAPSHOT,
            instance.copy_tags_to_snapshot() == Some(spec.backup.copy_tags_to_snapshot),
        ),
    ];
    let enforced = agreement.into_iter();
    let enforced = enforced.filter(|(field, agrees)| *agrees || before.contains(field));
    enforced.map(|(field, _)| field).collect()
}

/// Returns the modification that makes the instance match the spec, if it is applied at this time. Changes that RDS has
/// accepted for the maintenance window (`PendingModifiedValues`) count as applied if they are to wait for it, and are
/// requested again otherwise; those to other values are taken back. Fields with a secure default are modified only if they
/// are [enforced], and fields that the spec leaves open are left alone. `record` has what was requested before.
pub(crate) fn between(
    spec: &CloudDatabaseSpec,
    when: ApplyChanges,
    instance: &DbInstance,
    enforced: &[&str],
    record: &RecordedInstance<'_>,
) -> Modification {
    let pending = instance.pending_modified_values();
    let waits = when == ApplyChanges::MaintenanceWindow;
    let counted = pending.filter(|_| waits);
    Modification {
        instance_class: Some(spec.instance_class.clone()).filter(|wanted| {
            differs(
                Some(wanted.as_str()),
                instance.db_instance_class(),
                pending.and_then(|it| it.db_instance_class()),
                waits,
            )
        }),
        storage: storage::change(&spec.storage, instance, counted, record),
        engine_version: engine_version::upgrade(spec, instance, waits),
        auto_minor_version_upgrade: settings::auto_minor_version_upgrade(spec, instance),
        engine_lifecycle_support: settings::engine_lifecycle_support(spec, instance),
        parameter_group: groups::parameter_group(spec, instance),
        option_group: groups::option_group(spec, instance, waits),
        ca_certificate: settings::ca_certificate(spec, instance, waits),
        iam_authentication: settings::iam_authentication(spec, instance, waits),
        network_type: settings::network_type(spec, instance),
        dedicated_log_volume: settings::dedicated_log_volume(spec, instance),
        monitoring: spec
            .monitoring
            .as_ref()
            .map_or_else(Default::default, |it| monitoring::change(it, instance)),
        multi_az: spec.multi_az.filter(|wanted| {
            differs(
                Some(*wanted),
                Some(instance.multi_az().unwrap_or_default()),
                pending.and_then(|it| it.multi_az()),
                waits,
            )
        }),
        retention_days: spec.backup.retention_days.filter(|wanted| {
            differs(
                Some(*wanted),
                Some(instance.backup_retention_period().unwrap_or_default()),
                pending.and_then(|it| it.backup_retention_period()),
                waits,
            )
        }),
        // RDS stores windows in lower case.
        backup_window: spec
            .backup
            .window
            .clone()
            .filter(|wanted| !is_window(instance.preferred_backup_window(), wanted)),
        maintenance_window: spec
            .maintenance_window
            .clone()
            .filter(|wanted| !is_window(instance.preferred_maintenance_window(), wanted)),
        // RDS restarts the database at once for another port, also if changes are to wait.
        port: spec
            .port
            .filter(|wanted| !waits && other_port(*wanted, instance)),
        deletion_protection: spec
            .deletion_protection
            .filter(|wanted| instance.deletion_protection().unwrap_or_default() != *wanted),
        publicly_accessible: Some(spec.network.publicly_accessible).filter(|wanted| {
            enforced.contains(&PUBLICLY_ACCESSIBLE)
                && instance
                    .publicly_accessible()
                    .is_some_and(|is| is != *wanted)
        }),
        security_groups: security_groups(spec, instance),
        copy_tags_to_snapshot: Some(spec.backup.copy_tags_to_snapshot).filter(|wanted| {
            enforced.contains(&COPY_TAGS_TO_SNAPSHOT)
                && instance
                    .copy_tags_to_snapshot()
                    .is_some_and(|is| is != *wanted)
        }),
        password: None,
        tags: None,
    }
}

fn is_window(actual: Option<&str>, wanted: &str) -> bool {
    actual.is_some_and(|actual| actual.eq_ignore_ascii_case(wanted))
}

fn other_port(wanted: i32, instance: &DbInstance) -> bool {
    let actual = instance.endpoint().and_then(|endpoint| endpoint.port());
    let pending = instance.pending_modified_values();
    let actual = pending.and_then(|it| it.port()).or(actual);
    actual.is_some_and(|actual| actual != wanted)
}

/// Returns true if the spec sets a field of which RDS has accepted a change.
pub(crate) fn is_of_spec(spec: &CloudDatabaseSpec, field: &str) -> bool {
    match field {
        "multiAz" => spec.multi_az.is_some(),
        "backup.retentionDays" => spec.backup.retention_days.is_some(),
        "engineVersion" => spec.engine_version.is_some(),
        "port" => spec.port.is_some(),
        "optionGroup" => spec.option_group.is_some(),
        "caCertificate" => spec.ca_certificate.is_some(),
        "iamAuthentication" => spec.iam_authentication.is_some(),
        "monitoring.logExports" => {
            let monitoring = spec.monitoring.as_ref();
            monitoring.is_some_and(|it| it.log_exports.is_some())
        }
        // It waits for a restart, which is reported otherwise.
        "dedicatedLogVolume" => false,
        // Names of RDS.
        other => !other.starts_with(char::is_uppercase),
    }
}

/// Returns the fields that RDS has accepted and not applied yet, under their names in the spec, or else those in RDS.
pub(crate) fn pending(instance: &DbInstance) -> Vec<String> {
    let none = PendingModifiedValues::builder().build();
    let pending = instance.pending_modified_values().unwrap_or(&none);
    let fields = [
        (groups::has_pending_options(instance), "optionGroup"),
        (pending.db_instance_class().is_some(), "instanceClass"),
        (pending.allocated_storage().is_some(), "storage.sizeGib"),
        (pending.storage_type().is_some(), "storage.type"),
        (pending.iops().is_some(), "storage.iops"),
        (
            pending.storage_throughput().is_some(),
            "storage.throughputMibps",
        ),
        (pending.engine_version().is_some(), "engineVersion"),
        (pending.multi_az().is_some(), "multiAz"),
        (
            pending.backup_retention_period().is_some(),
            "backup.retentionDays",
        ),
        (pending.port().is_some(), "port"),
        (pending.master_user_password().is_some(), PASSWORD),
        (
            pending.db_instance_identifier().is_some(),
            "DBInstanceIdentifier",
        ),
        (
            pending.ca_certificate_identifier().is_some(),
            "caCertificate",
        ),
        (
            pending.iam_database_authentication_enabled().is_some(),
            "iamAuthentication",
        ),
        (
            pending.dedicated_log_volume().is_some(),
            "dedicatedLogVolume",
        ),
        (
            pending.pending_cloudwatch_logs_exports().is_some(),
            "monitoring.logExports",
        ),
        (pending.license_model().is_some(), "LicenseModel"),
        (
            pending.db_subnet_group_name().is_some(),
            "DBSubnetGroupName",
        ),
    ];
    let fields = fields.into_iter();
    fields
        .filter(|(is_pending, _)| *is_pending)
        .map(|(_, field)| field.to_owned())
        .collect()
}

/// Returns the security groups to set, if the spec lists some and the instance has others. Groups that are being
/// removed count as removed.
fn security_groups(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Option<Vec<String>> {
    let wanted: BTreeSet<_> = spec
        .network
        .security_groups
        .iter()
        .map(String::as_str)
        .collect();
    let actual = instance.vpc_security_groups().iter();
    let actual = actual.filter(|group| group.status() != Some("removing"));
    let actual: BTreeSet<_> = actual
        .filter_map(|group| group.vpc_security_group_id())
        .collect();
    let differ = !wanted.is_empty() && wanted != actual;
    differ.then(|| spec.network.security_groups.clone())
}

/// Returns the differences that remain: those that cannot be changed, and those in fields that are not [enforced].
pub(crate) fn unrepairable(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    enforced: &[&str],
) -> Vec<String> {
    let mut differences = Vec::new();
    if instance.publicly_accessible() == Some(!spec.network.publicly_accessible)
        && !enforced.contains(&PUBLICLY_ACCESSIBLE)
    {
        let (is, set) = if spec.network.publicly_accessible {
            ("not publicly accessible", "true")
        } else {
            ("publicly accessible", "false")
        };
        differences.push(format!(
            "it is {is}, as it was created, and is not changed, because clients may depend on it; to change it, set PubliclyAccessible to {set} in RDS"
        ));
    }
    if instance.copy_tags_to_snapshot() == Some(!spec.backup.copy_tags_to_snapshot)
        && !enforced.contains(&COPY_TAGS_TO_SNAPSHOT)
    {
        let copies = if spec.backup.copy_tags_to_snapshot {
            "do not get its tags"
        } else {
            "get its tags"
        };
        differences.push(format!(
            "its snapshots {copies}, as configured at its creation, and this is not changed; to change it, set CopyTagsToSnapshot to {} in RDS",
            spec.backup.copy_tags_to_snapshot
        ));
    }
    if spec.apply_changes == ApplyChanges::MaintenanceWindow
        && let Some(port) = spec.port.filter(|port| other_port(*port, instance))
    {
        differences.push(format!(
            "its port is not changed to {port} while `applyChanges` is MaintenanceWindow, because RDS restarts the database for that at once"
        ));
    }
    differences.extend(immutable(spec, instance));
    differences
}

/// Returns the differences that no modification can remove.
pub(crate) fn immutable(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Vec<String> {
    let mut differences = Vec::new();
    if instance.storage_encrypted() == Some(!spec.encryption.enabled) {
        let is = if spec.encryption.enabled {
            "not encrypted"
        } else {
            "encrypted"
        };
        differences.push(format!(
            "its storage is {is}, as it was created, and RDS cannot change this"
        ));
    }
    if let (Some(wanted), Some(actual)) = (&spec.encryption.kms_key, instance.kms_key_id())
        && !wanted.contains("alias/")
        && actual != wanted
        && !actual.ends_with(&format!("/{wanted}"))
    {
        differences.push(format!(
            "its storage has the KMS key '{actual}', and RDS cannot change this"
        ));
    }
    if let (Some(wanted), Some(actual)) = (&spec.database_name, instance.db_name())
        && wanted != actual
    {
        differences.push(format!("its database is named '{actual}'"));
    }
    let subnet_group = instance.db_subnet_group();
    if let Some(wanted) = &spec.network.subnet_group
        && let Some(actual) = subnet_group.and_then(|group| group.db_subnet_group_name())
        // RDS stores the names in lower case.
        && !wanted.eq_ignore_ascii_case(actual)
    {
        differences.push(format!(
            "it is in the subnet group '{actual}' and is not moved to '{wanted}'"
        ));
    }
    if let (Some(wanted), Some(actual)) = (
        &spec.network.availability_zone,
        instance.availability_zone(),
    ) && wanted != actual
    {
        differences.push(format!(
            "it is in the availability zone '{actual}', as it was created, and is not moved to '{wanted}'"
        ));
    }
    let monitoring = spec.monitoring.as_ref();
    differences.extend(monitoring.and_then(|it| monitoring::other_key(it, instance)));
    if let (Some(wanted), Some(actual)) = (&spec.engine_version, instance.engine_version())
        && compare_versions(wanted, actual) == Ordering::Less
    {
        differences.push(format!(
            "it runs version {actual} and cannot be downgraded to {wanted}"
        ));
    }
    differences
}

/// Returns the differences of the master user and of the secret in which RDS keeps the password, none of which can be
/// changed.
pub(crate) fn of_master_user(user: &MasterUser, instance: &DbInstance) -> Vec<String> {
    let mut differences = Vec::from_iter(other_user(&user.name, instance));
    differences.extend(impaired_secret(instance));
    if let MasterPassword::Managed { kms_key } = &user.password {
        differences.extend(other_secret_key(kms_key.as_deref(), instance));
    }
    differences
}

/// Returns the difference of the master user, which cannot be changed.
pub(crate) fn other_user(wanted: &str, instance: &DbInstance) -> Option<String> {
    let actual = instance.master_username()?;
    (wanted != actual).then(|| format!("its master user is '{actual}', as it was created"))
}

/// Returns the difference of the KMS key of the secret in which RDS keeps the password, which cannot be changed. RDS reports
/// the ARN of the key, with which an alias cannot be compared.
fn other_secret_key(wanted: Option<&str>, instance: &DbInstance) -> Option<String> {
    let wanted = wanted.filter(|it| !it.contains("alias/"))?;
    let actual = instance.master_user_secret()?.kms_key_id()?;
    let is_same = wanted == actual || actual.rsplit('/').next() == Some(wanted);
    (!is_same).then(|| {
        format!(
            "the secret of its master user is encrypted with the key '{actual}', and RDS cannot change this; to change it, use another way for the password for a while"
        )
    })
}

/// Returns what is wrong with the secret in which RDS keeps the password.
fn impaired_secret(instance: &DbInstance) -> Option<String> {
    let secret = instance.master_user_secret()?;
    (secret.secret_status() == Some("impaired")).then(|| {
        format!(
            "RDS can no longer rotate the secret '{}' of its master user; let RDS use the secret and its KMS key, or use another way for the password for a while",
            secret.secret_arn().unwrap_or_default()
        )
    })
}

/// Returns the tags that an instance or a snapshot lacks or has with another value. Tags of other clients are kept.
pub(crate) fn missing_tags(
    expected: BTreeMap<String, String>,
    actual: &[Tag],
) -> BTreeMap<String, String> {
    let has = |key: &str, value: &str| {
        let mut actual = actual.iter();
        actual.any(|tag| tag.key() == Some(key) && tag.value() == Some(value))
    };
    let expected = expected.into_iter();
    expected.filter(|(key, value)| !has(key, value)).collect()
}

#[cfg(test)]
mod tests;
