//! Constraints of a modification.

use serde_json::Value;

use crate::catalogue;
use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::launch::require_storage;
use crate::protocol::fault::Fault;
use crate::rules::{identifier, limits, master_user, storage, window};
use crate::state::instance::Instance;
use crate::state::resources::SECRET_KEY;

const RETENTION: &str = "PerformanceInsightsRetentionPeriod";

/// Checks a modification, and completes it with what RDS derives from it.
pub(super) fn check(
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
    check_secret_key(instance, changed)?;
    check_subnet_group(call, changed)?;
    check_windows(&current, changed)?;
    check_replicas(call, instance, changed)?;
    check_database_insights(parameters)?;
    check_storage(call, instance, &current, parameters, changed)?;
    let mut wanted = current.clone();
    wanted.overlay(changed);
    // Without Performance Insights, its retention ends.
    if changed.given_flag("EnablePerformanceInsights") == Some(false) {
        wanted.put(RETENTION, changed.get(RETENTION).cloned());
    }
    limits::check_role(parameters, &wanted)?;
    limits::check(&wanted)?;
    call.region.resources.check_network_type(&wanted)?;
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

/// Checks that a call which enables the advanced mode repeats what it needs (hashicorp/terraform-provider-aws#41952).
fn check_database_insights(parameters: &Fields) -> Result<(), Fault> {
    let is_enabled = parameters.given_flag("EnablePerformanceInsights") == Some(true);
    let days = parameters.number(RETENTION).unwrap_or_default();
    if parameters.text("DatabaseInsightsMode") != "advanced" || (is_enabled && days >= 465) {
        return Ok(());
    }
    Err(Fault::combination(
        "To enable the Advanced mode of Database Insights, modify your instance to enable Performance Insights and set the retention period for Performance Insights to at least 465 days.",
    ))
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

/// Checks the KMS key of a secret that RDS manages, and adds the default key to a new secret.
fn check_secret_key(instance: &Instance, changed: &mut Fields) -> Result<(), Fault> {
    const KEY: &str = "MasterUserSecretKmsKeyId";
    let is_new = changed.flag("ManageMasterUserPassword");
    if changed.has(KEY) && !is_new {
        let why = if instance.settings.flag("ManageMasterUserPassword") {
            "You can't change the KMS key of a secret that is already managed in Secrets Manager."
        } else {
            "You can't specify MasterUserSecretKmsKeyId unless ManageMasterUserPassword is enabled."
        };
        return Err(Fault::combination(why));
    }
    if is_new {
        changed.set_default(KEY, SECRET_KEY);
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
