//! Differences of the parameter group and the option group.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::CloudDatabaseSpec;

/// Statuses of an option group that the instance is leaving, or that RDS could not apply.
const NOT_SET: [&str; 4] = [
    "pending-removal",
    "pending-maintenance-removal",
    "removing",
    "failed",
];

/// Status of an option group that waits for the maintenance window.
const WAITS: &str = "pending-maintenance-apply";

/// Returns the parameter group to set. RDS stores the names in lower case, and associates a group at once, unless an upgrade that
/// was requested with it waits for the maintenance window: the present version accepts no group of another one.
pub(super) fn parameter_group(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Option<String> {
    let wanted = spec.parameter_group.as_ref()?;
    let pending = instance.pending_modified_values();
    let upgrade = pending.and_then(|pending| pending.engine_version());
    let running = instance.engine_version().unwrap_or_default();
    if upgrade.is_some_and(|upgrade| spec.engine.is_major_upgrade(running, upgrade)) {
        return None;
    }
    let mut actual = instance.db_parameter_groups().iter();
    let is_set = actual.any(|it| is_named(it.db_parameter_group_name(), wanted));
    (!is_set).then(|| wanted.clone())
}

/// Returns the option group to set. One that waits for the maintenance window counts as set if it is to wait.
pub(super) fn option_group(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    waits: bool,
) -> Option<String> {
    let wanted = spec.option_group.as_ref()?;
    let mut actual = instance.option_group_memberships().iter();
    let is_set = actual.any(|it| {
        let status = it.status().unwrap_or_default();
        is_named(it.option_group_name(), wanted)
            && !NOT_SET.contains(&status)
            && (waits || status != WAITS)
    });
    (!is_set).then(|| wanted.clone())
}

/// Returns true if an option group waits for the maintenance window.
pub(super) fn has_pending_options(instance: &DbInstance) -> bool {
    let mut groups = instance.option_group_memberships().iter();
    groups.any(|it| it.status() == Some(WAITS))
}

fn is_named(actual: Option<&str>, wanted: &str) -> bool {
    actual.is_some_and(|actual| actual.eq_ignore_ascii_case(wanted))
}

/// Returns the settings of the spec that RDS has accepted and applies only at the next restart.
pub(crate) fn waiting_for_restart(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Vec<String> {
    let mut waiting = Vec::new();
    let mut groups = instance.db_parameter_groups().iter();
    let is_pending = groups.any(|it| it.parameter_apply_status() == Some("pending-reboot"));
    if let Some(group) = spec.parameter_group.as_ref().filter(|_| is_pending) {
        waiting.push(format!("the parameters of the parameter group '{group}'"));
    }
    let pending = instance.pending_modified_values();
    let pending = pending.and_then(|it| it.dedicated_log_volume());
    if pending.is_some() && pending == spec.dedicated_log_volume {
        waiting.push("the change of dedicatedLogVolume".to_owned());
    }
    let waiting = waiting.into_iter();
    waiting
        .map(|what| {
            format!("RDS applies {what} at the next restart of the database, which is not requested; reboot the instance in RDS")
        })
        .collect()
}
