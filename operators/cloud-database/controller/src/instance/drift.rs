//! Drift: differences between an instance and the spec of its object.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues, Tag};
use lockstep_cloud_database_api::{ApplyChanges, CloudDatabaseSpec, compare_versions};

use crate::credentials::master_user::{MasterPassword, MasterUser};
use crate::instance::modification::Modification;
use crate::instance::record::Record;
use crate::settings::{self, Compared, Row, SETTINGS};

/// Returns the settings that are enforced from the start, because the instance was created with the values of the spec.
pub(crate) fn enforced_at_creation() -> Vec<&'static str> {
    with_secure_default().map(Row::field).collect()
}

fn with_secure_default() -> impl Iterator<Item = &'static dyn Row> {
    SETTINGS.into_iter().filter(|row| row.has_secure_default())
}

/// Returns the fields with a secure default that are enforced: those in which the instance matches the spec now or has
/// matched it before. If it never has, it was created without the default, and a change that no user requested could
/// disconnect its clients.
pub(crate) fn enforced(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    before: &[String],
) -> Vec<&'static str> {
    let enforced = with_secure_default().filter(|row| {
        row.agrees(spec, instance) || before.iter().any(|field| field == row.field())
    });
    enforced.map(Row::field).collect()
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
    record: &Record,
) -> Modification {
    let compared = Compared {
        spec,
        instance,
        waits: when == ApplyChanges::MaintenanceWindow,
        record,
    };
    let is_enforced = |row: &&dyn Row| !row.has_secure_default() || enforced.contains(&row.field());
    let rows = SETTINGS.into_iter().filter(is_enforced);
    rows.filter_map(|row| row.change(&compared)).collect()
}

/// Returns true if the spec sets a field of which RDS has accepted a change.
pub(crate) fn is_of_spec(spec: &CloudDatabaseSpec, field: &str) -> bool {
    let mut rows = SETTINGS.into_iter();
    let row = rows.find(|row| row.field() == field);
    row.is_some_and(|row| row.is_of_spec(spec))
}

/// Returns the fields that RDS has accepted and not applied yet, under their names in the spec, or else those in RDS.
pub(crate) fn pending(instance: &DbInstance) -> Vec<String> {
    let rows = SETTINGS.into_iter();
    let rows = rows.filter(|row| row.is_pending(instance)).map(Row::field);
    let others = instance.pending_modified_values().map(pending_others);
    let others = others.into_iter().flatten();
    rows.chain(others).map(String::from).collect()
}

/// Returns the names of what is pending and no setting.
fn pending_others(pending: &PendingModifiedValues) -> impl Iterator<Item = &'static str> {
    let others = [
        (
            pending.db_instance_identifier().is_some(),
            "DBInstanceIdentifier",
        ),
        (pending.license_model().is_some(), "LicenseModel"),
        (
            pending.db_subnet_group_name().is_some(),
            "DBSubnetGroupName",
        ),
    ];
    let others = others.into_iter().filter(|(is_pending, _)| *is_pending);
    others.map(|(_, name)| name)
}

/// Returns the differences that remain: those that cannot be changed, and those in fields that are not [enforced].
pub(crate) fn unrepairable(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    enforced: &[&str],
) -> Vec<String> {
    let left_alone = with_secure_default().filter(|row| !enforced.contains(&row.field()));
    let mut differences: Vec<_> = left_alone
        .filter_map(|row| row.left_alone(spec, instance))
        .collect();
    if spec.apply_changes == ApplyChanges::MaintenanceWindow
        && let Some(port) = settings::other_port(spec, instance)
    {
        differences.push(format!(
            "its port is not changed to {port} while `applyChanges` is MaintenanceWindow, because RDS restarts the database for that at once"
        ));
    }
    differences.extend(settings::owned_by_backup_plan(spec, instance));
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
    differences.extend(monitoring.and_then(|monitoring| settings::other_key(monitoring, instance)));
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
pub(crate) mod example;
#[cfg(test)]
mod tests;
