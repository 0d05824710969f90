//! `ModifyDBInstance`.
//!
//! parameters → settings that differ → checks → applied at once, as soon as possible, or in the maintenance window

use serde_json::{Value, json};

use crate::catalogue;
use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::launch::require_storage;
use crate::protocol::fault::Fault;
use crate::rules::{identifier, limits, master_user, storage, window};
use crate::state::instance::Instance;
use crate::state::reported;
use crate::state::resources::family;

/// States in which RDS accepts a modification. In the last four, a modification can end the state.
const ALLOWED: &[&str] = &[
    "available",
    "storage-optimization",
    "incompatible-credentials",
    "incompatible-parameters",
    "insufficient-capacity",
    "storage-full",
];

/// Parameters that control the operation and are no settings.
const CONTROL: &[&str] = &[
    "AllowMajorVersionUpgrade",
    "ApplyImmediately",
    "CertificateRotationRestart",
    "DBInstanceIdentifier",
    "TagSpecifications",
];

/// Parameters with another name than in `CreateDBInstance`.
const RENAMED: &[(&str, &str)] = &[("DBPortNumber", "Port")];

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

/// Modifies an instance, or notes its modifications for the maintenance window.
pub(crate) fn modify(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let id = parameters.text("DBInstanceIdentifier").to_ascii_lowercase();
    let instance = call.region.instance(&id)?;
    instance.require_status("ModifyDBInstance", ALLOWED, |_| {
        "Database instance is not in available state.".to_owned()
    })?;
    let instance = instance.clone();
    let requested = requested(&instance, parameters);
    let (mut changed, cancelled) = differing(&instance, &requested);
    check(call, &instance, parameters, &mut changed)?;
    let now = call.now;
    let config = call.config;
    let instance = call.region.instance(&id)?;
    for name in cancelled {
        instance.pending.take(name);
    }
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
        instance.called("ModifyDBInstance", now);
        leave_failure(instance, &changed, &soon, now);
        instance.apply_pending(&config.timing, now);
    } else {
        if !soon.is_empty() {
            instance.called("ModifyDBInstance", now);
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

/// Returns the settings that a request names, with the names that they have in `CreateDBInstance`.
fn requested(instance: &Instance, parameters: &Fields) -> Fields {
    let mut requested = parameters.clone();
    requested.split_off(CONTROL);
    for (from, to) in RENAMED {
        if let Some(value) = requested.take(from) {
            requested.set(to, value);
        }
    }
    if let Some(exports) = requested.take("CloudwatchLogsExportConfiguration") {
        let names = |list: &str| -> Vec<String> {
            let names = exports[list].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(String::from).collect()
        };
        let disabled = names("DisableLogTypes");
        let active = instance.settings.texts("EnableCloudwatchLogsExports");
        let mut active: Vec<_> = active.into_iter().map(String::from).collect();
        active.retain(|kind| !disabled.contains(kind));
        for kind in names("EnableLogTypes") {
            if !active.contains(&kind) {
                active.push(kind);
            }
        }
        requested.set("EnableCloudwatchLogsExports", active);
    }
    if let Some(name) = requested.given_text("NewDBInstanceIdentifier") {
        let name = name.to_ascii_lowercase();
        if name == instance.id() {
            requested.take("NewDBInstanceIdentifier");
        } else {
            requested.set("NewDBInstanceIdentifier", name);
        }
    }
    requested
}

/// Returns the settings that differ from those in force, and the names of pending modifications that the request takes
/// back because it names the values in force.
fn differing(instance: &Instance, requested: &Fields) -> (Fields, Vec<&'static str>) {
    let mut changed = requested.clone();
    let mut cancelled = Vec::new();
    for name in requested.names() {
        if is_in_force(instance, name, requested) {
            changed.take(name);
            let waits = storage::PARAMETERS.iter().chain(IN_WINDOW);
            cancelled.extend(waits.filter(|it| **it == name).copied());
        }
    }
    (changed, cancelled)
}

/// Returns true if a request names the value that is in force.
fn is_in_force(instance: &Instance, name: &str, requested: &Fields) -> bool {
    let settings = &instance.settings;
    let sorted = |fields: &Fields| {
        let mut texts = fields
            .texts(name)
            .into_iter()
            .map(String::from)
            .collect::<Vec<_>>();
        texts.sort();
        texts
    };
    match name {
        "EnableCloudwatchLogsExports" | "VpcSecurityGroupIds" => {
            sorted(requested) == sorted(settings)
        }
        "RotateMasterUserPassword" => !requested.flag(name),
        "DBParameterGroupName" if !settings.has(name) => {
            requested.text(name) == format!("default.{}", family(settings))
        }
        "DBSubnetGroupName" if !settings.has(name) => requested.text(name) == "default",
        _ => requested.get(name) == settings.get(name),
    }
}

/// Settings that can wait for the maintenance window, apart from storage.
const IN_WINDOW: &[&str] = &[
    "BackupRetentionPeriod",
    "CACertificateIdentifier",
    "DBInstanceClass",
    "DBSubnetGroupName",
    "DedicatedLogVolume",
    "EnableIAMDatabaseAuthentication",
    "EngineVersion",
    "LicenseModel",
    "MultiAZ",
    "OptionGroupName",
];

/// Checks a modification, and completes it with what RDS derives from it.
fn check(
    call: &Call<'_>,
    instance: &Instance,
    parameters: &Fields,
    changed: &mut Fields,
) -> Result<(), Fault> {
    if changed.has("Engine") {
        return Err(Fault::combination(
            "The engine of a DB instance can't be changed with this operation.",
        ));
    }
    let mut current = instance.settings.clone();
    current.overlay(&instance.pending);
    check_identifier(call, changed)?;
    check_version(call, &instance.settings, parameters, changed)?;
    check_password(instance, parameters)?;
    check_rotation(instance, parameters)?;
    check_subnet_group(call, changed)?;
    check_windows(&current, changed)?;
    check_replicas(call, instance, changed)?;
    check_storage(call, instance, &current, parameters, changed)?;
    let mut wanted = current.clone();
    wanted.overlay(changed);
    limits::check(&wanted)?;
    for name in [
        "KmsKeyId",
        "PerformanceInsightsKMSKeyId",
        "MasterUserSecretKmsKeyId",
    ] {
        if let Some(key) = changed.given_text(name) {
            let key = call.region.resources.key(key)?;
            changed.set(name, key);
        }
    }
    let mut references = changed.clone();
    for name in ["Engine", "EngineVersion", "DBParameterGroupName"] {
        references.put(name, wanted.get(name).cloned());
    }
    call.region.resources.check(&references)
}

fn check_identifier(call: &Call<'_>, changed: &Fields) -> Result<(), Fault> {
    let Some(name) = changed.given_text("NewDBInstanceIdentifier") else {
        return Ok(());
    };
    identifier::check("NewDBInstanceIdentifier", name, identifier::INSTANCE)?;
    if call.region.has_instance(name) {
        return Err(Fault::new(
            "DBInstanceAlreadyExists",
            "DB instance already exists",
        ));
    }
    Ok(())
}

fn check_version(
    call: &Call<'_>,
    current: &Fields,
    parameters: &Fields,
    changed: &mut Fields,
) -> Result<(), Fault> {
    let engine = current.text("Engine");
    let running = current.text("EngineVersion");
    if let Some(wanted) = changed.given_text("EngineVersion") {
        let version = call.config.catalogue.resolve(engine, Some(wanted))?;
        let is_major = catalogue::major(engine, &version) != catalogue::major(engine, running);
        let names_major = wanted == catalogue::major(engine, wanted);
        let targets = call.config.catalogue.targets(engine, running);
        if version == running || (names_major && !is_major && !targets.contains(&version.as_str()))
        {
            changed.take("EngineVersion");
        } else if !targets.contains(&version.as_str()) {
            return Err(Fault::combination(format!(
                "Cannot upgrade {engine} from {running} to {version}"
            )));
        } else if is_major && !parameters.flag("AllowMajorVersionUpgrade") {
            return Err(Fault::combination(
                "The AllowMajorVersionUpgrade flag must be present when upgrading to a new major version.",
            ));
        } else {
            changed.set("EngineVersion", version);
        }
    }
    let Some(class) = changed.given_text("DBInstanceClass") else {
        return Ok(());
    };
    let next = changed.given_text("EngineVersion");
    for version in [Some(running), next].into_iter().flatten() {
        catalogue::require_class(engine, version, class)?;
    }
    Ok(())
}

fn check_password(instance: &Instance, parameters: &Fields) -> Result<(), Fault> {
    let is_managed = parameters
        .given_flag("ManageMasterUserPassword")
        .unwrap_or_else(|| instance.settings.flag("ManageMasterUserPassword"));
    let was_managed = instance.settings.flag("ManageMasterUserPassword");
    match parameters.given_text("MasterUserPassword") {
        Some(_) if is_managed => Err(Fault::combination(
            "You can't specify MasterUserPassword for an instance with ManageMasterUserPassword enabled.",
        )),
        Some(password) => master_user::check_password(instance.settings.text("Engine"), password),
        None if was_managed && !is_managed => Err(Fault::combination(
            "You must specify MasterUserPassword when you disable ManageMasterUserPassword.",
        )),
        None => Ok(()),
    }
}

/// Checks the rotation of a secret that RDS manages.
fn check_rotation(instance: &Instance, parameters: &Fields) -> Result<(), Fault> {
    if !parameters.flag("RotateMasterUserPassword") {
        return Ok(());
    }
    let is_managed = instance.settings.flag("ManageMasterUserPassword");
    if !is_managed || !parameters.flag("ApplyImmediately") {
        return Err(Fault::combination(
            "You can rotate only a master user password that is managed in Secrets Manager, and only immediately.",
        ));
    }
    Ok(())
}

/// Checks a new subnet group. All groups of the simulator are in the same VPC, and RDS moves an instance only to another
/// one.
fn check_subnet_group(call: &Call<'_>, changed: &Fields) -> Result<(), Fault> {
    let Some(group) = changed.given_text("DBSubnetGroupName") else {
        return Ok(());
    };
    call.region
        .resources
        .check(&changed.only(&["DBSubnetGroupName"]))?;
    Err(Fault::new(
        "InvalidVPCNetworkStateFault",
        format!(
            "You cannot move the DB instance to subnet group {group}. The specified DB subnet group and DB instance are in the same VPC. Choose a DB subnet group in different VPC than the specified DB instance and try again."
        ),
    ))
}

fn check_windows(current: &Fields, changed: &mut Fields) -> Result<(), Fault> {
    let names = ["PreferredBackupWindow", "PreferredMaintenanceWindow"];
    if !names.iter().any(|name| changed.has(name)) {
        return Ok(());
    }
    let wanted = names.map(|name| {
        let wanted = changed.given_text(name);
        wanted.or_else(|| current.given_text(name))
    });
    let (backup, maintenance) = window::check(wanted[0], wanted[1])?;
    changed.set(names[0], backup);
    changed.set(names[1], maintenance);
    Ok(())
}

fn check_replicas(call: &Call<'_>, instance: &Instance, changed: &Fields) -> Result<(), Fault> {
    let mut instances = call.region.instances.iter();
    let has_replicas = instances.any(|it| it.source.as_ref() == Some(&instance.resource_id));
    if has_replicas && changed.number("BackupRetentionPeriod") == Some(0) {
        return Err(Fault::combination(
            "Backups can't be disabled for a DB instance that is a source of read replicas.",
        ));
    }
    Ok(())
}

/// Checks storage, and replaces its parameters by all that change.
fn check_storage(
    call: &Call<'_>,
    instance: &Instance,
    current: &Fields,
    parameters: &Fields,
    changed: &mut Fields,
) -> Result<(), Fault> {
    let mut requested = changed.split_off(storage::PARAMETERS);
    let ceiling = changed.take("MaxAllocatedStorage");
    if requested.is_empty() && ceiling.is_none() {
        return Ok(());
    }
    let mut current = current.clone();
    let size = requested.number("AllocatedStorage");
    let size = size.or_else(|| current.number("AllocatedStorage"));
    if let Some(ceiling) = ceiling {
        // A ceiling that equals the size ends autoscaling.
        let ends = ceiling.as_i64() == size;
        let ceiling = if ends { Value::Null } else { ceiling };
        current.set("MaxAllocatedStorage", ceiling.clone());
        changed.set("MaxAllocatedStorage", ceiling);
    }
    let wanted = storage::modify(&current, &requested)?;
    if requested.is_empty() {
        return Ok(());
    }
    let ended = instance
        .storage_modified
        .map(|at| at + call.config.timing.storage_cooldown);
    let is_optimizing = instance.status() == "storage-optimization";
    if is_optimizing || ended.is_some_and(|end| end > call.now) {
        return Err(Fault::combination(
            "You can't currently modify the storage of this DB instance because the previous storage change is being optimized.",
        ));
    }
    storage::require_together(&wanted, parameters)?;
    let before = instance
        .settings
        .number("AllocatedStorage")
        .unwrap_or_default();
    let after = wanted.number("AllocatedStorage").unwrap_or_default();
    require_storage(call, after - before)?;
    // The performance that RDS chooses by default belongs to the modification.
    for name in ["Iops", "StorageThroughput"] {
        if wanted.get(name) != current.get(name) {
            requested.put(name, wanted.get(name).cloned());
        }
    }
    changed.overlay(&requested);
    Ok(())
}
