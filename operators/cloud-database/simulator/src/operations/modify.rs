//! `ModifyDBInstance`.
//!
//! parameters → settings that differ → checks → applied at once, as soon as possible, or in the maintenance window

mod check;
mod request;

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::protocol::fault::Fault;
use crate::state::instance::Instance;
use crate::state::reported;

/// States in which RDS accepts a modification. In the last four, a modification can end the state.
const ALLOWED: &[&str] = &[
    "available",
    "storage-optimization",
    "incompatible-credentials",
    "incompatible-parameters",
    "insufficient-capacity",
    "storage-full",
];

/// Settings that RDS applies while it answers.
const AT_ONCE: &[&str] = &[
    "AutoMinorVersionUpgrade",
    "CopyTagsToSnapshot",
    "DBParameterGroupName",
    "DeletionProtection",
    "EngineLifecycleSupport",
    "MaxAllocatedStorage",
    "PreferredBackupWindow",
    "PreferredMaintenanceWindow",
    "PromotionTier",
];

/// Settings that RDS applies as soon as possible, whether or not the request asks to apply modifications immediately.
const SOON: &[&str] = &[
    "DatabaseInsightsMode",
    "EnableCloudwatchLogsExports",
    "EnablePerformanceInsights",
    "ManageMasterUserPassword",
    "MasterUserPassword",
    "MasterUserSecretKmsKeyId",
    "MonitoringInterval",
    "MonitoringRoleArn",
    "PerformanceInsightsKMSKeyId",
    "PerformanceInsightsRetentionPeriod",
    "Port",
    "PubliclyAccessible",
    "RotateMasterUserPassword",
    "VpcSecurityGroupIds",
];

/// Settings that RDS applies at the next reboot.
const AT_REBOOT: &[&str] = &["DedicatedLogVolume"];

/// Modifies an instance, or notes its modifications for the maintenance window.
pub(crate) fn modify(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let id = parameters.text("DBInstanceIdentifier").to_ascii_lowercase();
    let instance = call.region.instance(&id)?;
    instance.require_status("ModifyDBInstance", ALLOWED, |_| {
        "Database instance is not in available state.".to_owned()
    })?;
    let instance = instance.clone();
    let requested = request::settings(&instance, parameters);
    let (mut changed, cancelled) = request::differing(&instance, &requested);
    check::check(call, &instance, parameters, &mut changed)?;
    let now = call.now;
    let config = call.config;
    let instance = call.region.instance(&id)?;
    instance.called("ModifyDBInstance", now);
    for name in cancelled {
        instance.pending.take(name);
        instance.at_reboot.take(name);
    }
    instance.at_reboot.overlay(&changed.split_off(AT_REBOOT));
    let mut at_once = changed.split_off(AT_ONCE);
    if !toggles_backups(instance, &changed) {
        at_once.overlay(&changed.split_off(&["BackupRetentionPeriod"]));
    }
    if at_once.has("DBParameterGroupName") {
        instance.needs_reboot = true;
    }
    instance.settings.overlay(&at_once);
    if instance.settings.get("MaxAllocatedStorage") == Some(&Value::Null) {
        instance.settings.take("MaxAllocatedStorage");
    }
    let soon = changed.split_off(SOON);
    instance.soon.overlay(&soon);
    instance.pending.overlay(&changed);
    let is_immediate = parameters.flag("ApplyImmediately");
    let has_pending = !instance.pending.is_empty();
    if is_immediate && has_pending {
        leave_failure(instance, &changed, &soon, now);
        instance.apply_pending(&config.timing, now);
    } else {
        if !soon.is_empty() {
            leave_failure(instance, &changed, &soon, now);
            instance.apply(&config.timing, now, false);
        }
        if has_pending {
            instance.wait_for_window(now);
        } else {
            instance.next_window = None;
        }
    }
    let instance = instance.clone();
    let reported = reported::instance(call.region, &instance, call.now);
    Ok(json!({"DBInstance": reported}))
}

/// Returns true if a modification enables or disables backups.
fn toggles_backups(instance: &Instance, changed: &Fields) -> bool {
    let before = instance.settings.number("BackupRetentionPeriod");
    let after = changed.number("BackupRetentionPeriod");
    after.is_some_and(|after| (after == 0) != (before == Some(0)))
}

/// Ends a state that a modification repairs.
fn leave_failure(instance: &mut Instance, changed: &Fields, soon: &Fields, now: jiff::Timestamp) {
    let is_repaired = match instance.status() {
        "storage-full" => changed.has("AllocatedStorage"),
        "insufficient-capacity" => changed.has("DBInstanceClass"),
        "incompatible-credentials" => soon.has("MasterUserPassword"),
        _ => false,
    };
    if is_repaired {
        instance.end_phase(now);
    }
}
