//! `RestoreDBInstanceFromDBSnapshot`, `RestoreDBInstanceToPointInTime` and `CreateDBInstanceReadReplica`: new instances with
//! the data and settings of another one.

use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use crate::fields::Fields;
use crate::operations::automated_backups;
use crate::operations::call::Call;
use crate::operations::launch::Launch;
use crate::operations::snapshot::not_usable;
use crate::protocol::fault::Fault;
use crate::rules::storage;
use crate::state::instance::Instance;

/// Settings that the new instance has from its source.
const INHERITED: &[&str] = &[
    "AllocatedStorage",
    "AutoMinorVersionUpgrade",
    "BackupRetentionPeriod",
    "CharacterSetName",
    "DBInstanceClass",
    "DBName",
    "DedicatedLogVolume",
    "Engine",
    "EngineLifecycleSupport",
    "EngineVersion",
    "Iops",
    "KmsKeyId",
    "LicenseModel",
    "MasterUsername",
    "Port",
    "PreferredBackupWindow",
    "PreferredMaintenanceWindow",
    "StorageEncrypted",
    "StorageThroughput",
    "StorageType",
    "Timezone",
];

/// Restores a snapshot as a new instance.
pub(crate) fn from_snapshot(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    if let Some(id) = parameters.given_text("DBClusterSnapshotIdentifier") {
        let message = format!("DBClusterSnapshot {id} not found.");
        return Err(Fault::new("DBClusterSnapshotNotFoundFault", message));
    }
    let now = call.now;
    let id = parameters.given_text("DBSnapshotIdentifier");
    let id = id.ok_or_else(|| Fault::missing("DBSnapshotIdentifier"))?;
    let prefix = call.region.place.arn("snapshot", "");
    let snapshot = call
        .region
        .snapshot(id.strip_prefix(&prefix).unwrap_or(id))?;
    if snapshot.status(now) != "available" {
        return Err(not_usable(snapshot));
    }
    let snapshot = snapshot.clone();
    let mut launch = inherit(&snapshot.settings, parameters)?;
    launch.password = snapshot.password;
    if !parameters.has("Tags") {
        // Without new tags, the instance gets those of the source of the snapshot.
        let mut instances = call.region.instances.iter();
        let source = instances.find(|it| it.resource_id == snapshot.resource_id);
        launch.tags = source.map_or(snapshot.tags, |source| source.tags.clone());
    }
    launch.run(call)
}

/// Restores an earlier state of an instance as a new instance, also of a deleted one whose automated backups are retained.
pub(crate) fn to_point_in_time(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    if let Some(arn) = parameters.given_text("SourceDBInstanceAutomatedBackupsArn") {
        return Err(automated_backups::not_found(arn));
    }
    let (source, latest) = point_in_time_source(call, parameters)?;
    if source.status() == "creating" {
        let message = format!("Instance {} is not in available state.", source.id());
        return Err(Fault::new("InvalidDBInstanceState", message));
    }
    let Some(earliest) = source.backed_up else {
        let message = format!("Automated backups are not enabled for {}.", source.id());
        return Err(Fault::new("PointInTimeRestoreNotEnabled", message));
    };
    require_time(parameters, earliest, earliest.max(latest))?;
    let mut parameters = parameters.clone();
    if let Some(target) = parameters.take("TargetDBInstanceIdentifier") {
        parameters.set("DBInstanceIdentifier", target);
    }
    let mut launch = inherit(&source.settings, &parameters)?;
    launch.password = source.password;
    launch.run(call)
}

/// Creates a read replica of an instance.
pub(crate) fn replica(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let source = source(call, parameters)?;
    if source.backed_up.is_none() {
        return Err(Fault::new(
            "InvalidDBInstanceState",
            "Automated backups are not enabled for this database instance. To enable automated backups, use ModifyDBInstance to set the backup retention period to a non-zero value.",
        ));
    }
    if source.status() != "available" {
        let message = format!("Instance {} is not in available state.", source.id());
        return Err(Fault::new("InvalidDBInstanceState", message));
    }
    // https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-secrets-manager.html#rds-secrets-manager-limitations
    if source.settings.flag("ManageMasterUserPassword") {
        return Err(Fault::value(format!(
            "Creating read replicas for source instance with engine {} where ManageMasterUserPassword is enabled is not supported.",
            source.settings.text("Engine")
        )));
    }
    let mut parameters = parameters.clone();
    parameters.set_default("BackupRetentionPeriod", 0);
    let mut launch = inherit(&source.settings, &parameters)?;
    launch.password = source.password;
    launch.source = Some(source.resource_id);
    launch.run(call)
}

/// Returns the instance whose earlier state is restored, and the latest time to which it can be restored.
fn point_in_time_source(
    call: &mut Call<'_>,
    parameters: &Fields,
) -> Result<(Instance, Timestamp), Fault> {
    // Transaction logs are stored every five minutes.
    let latest = call.now - 5.minutes();
    let Some(resource_id) = parameters.given_text("SourceDbiResourceId") else {
        return Ok((source(call, parameters)?, latest));
    };
    let mut instances = call.region.instances.iter();
    if let Some(found) = instances.find(|it| it.resource_id == resource_id) {
        return Ok((found.clone(), latest));
    }
    let mut retained = call.region.retained.iter();
    let found = retained.find(|it| it.instance.resource_id == resource_id);
    let found = found.ok_or_else(|| automated_backups::not_found(resource_id))?;
    Ok((found.instance.clone(), found.deleted))
}

/// Returns the instance that a parameter names.
fn source(call: &mut Call<'_>, parameters: &Fields) -> Result<Instance, Fault> {
    let name = "SourceDBInstanceIdentifier";
    let id = parameters
        .given_text(name)
        .ok_or_else(|| Fault::missing(name))?;
    let prefix = call.region.place.arn("db", "");
    let id = id.strip_prefix(&prefix).unwrap_or(id);
    call.region.instance(id).cloned()
}

/// Checks the time of a restore.
fn require_time(parameters: &Fields, earliest: Timestamp, latest: Timestamp) -> Result<(), Fault> {
    let uses_latest = parameters.flag("UseLatestRestorableTime");
    let time = match (parameters.given_text("RestoreTime"), uses_latest) {
        (Some(_), true) | (None, false) => {
            return Err(Fault::combination(
                "Specify either RestoreTime or UseLatestRestorableTime.",
            ));
        }
        (None, true) => return Ok(()),
        (Some(time), false) => time.parse::<Timestamp>(),
    };
    let time = time.map_err(|error| Fault::value(format!("Invalid RestoreTime: {error}")))?;
    if !(earliest..=latest).contains(&time) {
        return Err(Fault::value(format!(
            "The specified instance cannot be restored to a time later than {latest} or earlier than {earliest}"
        )));
    }
    Ok(())
}

/// Returns a new instance with settings of a source and the parameters of a request.
fn inherit(source: &Fields, parameters: &Fields) -> Result<Launch, Fault> {
    let engine = source.text("Engine");
    if let Some(wanted) = parameters.given_text("Engine").filter(|it| *it != engine) {
        let message = format!("A backup of {engine} cannot be restored as {wanted}.");
        return Err(Fault::new("InvalidRestoreFault", message));
    }
    let mut launch = Launch::from(parameters)?;
    let requested = std::mem::take(&mut launch.settings);
    let mut settings = source.only(INHERITED);
    let changed = requested.only(storage::PARAMETERS);
    if !changed.is_empty() {
        settings = storage::modify(&settings, &changed)?;
    }
    settings.overlay(&requested);
    launch.settings = settings;
    Ok(launch)
}
