//! Automated backups of instances.

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::catalogue;
use crate::rules::{storage, tags};
use crate::state::instance::Instance;
use crate::state::place::Place;
use crate::state::{resources, snapshot};

/// Automated backups of a deleted instance, which RDS retains for their retention period.
#[derive(Clone, Debug)]
pub(crate) struct RetainedBackup {
    /// Instance when it was deleted.
    pub(crate) instance: Instance,
    pub(crate) deleted: Timestamp,
}

/// Settings that automated backups report under the same name, besides those of snapshots.
const SAME: &[&str] = &[
    "BackupRetentionPeriod",
    "BackupTarget",
    "PreferredBackupWindow",
];

impl RetainedBackup {
    /// Returns true if the retention period is over.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        let days = self.instance.settings.number("BackupRetentionPeriod");
        self.deleted + (24 * days.unwrap_or_default()).hours() <= now
    }

    /// Returns the backups as RDS reports them.
    pub(crate) fn reported(&self, place: &Place) -> Value {
        reported(&self.instance, "retained", self.deleted, place)
    }
}

/// Returns the automated backups of an instance that exists, as RDS reports them.
pub(crate) fn of_existing(instance: &Instance, place: &Place, now: Timestamp) -> Value {
    reported(instance, status(instance), now - 5.minutes(), place)
}

/// Returns the status of the automated backups of an instance that exists.
pub(crate) fn status(instance: &Instance) -> &'static str {
    match instance.backed_up {
        Some(_) => "active",
        None => "creating",
    }
}

/// Returns the identifier of the automated backups of an instance in their ARN.
pub(crate) fn id_of(instance: &Instance) -> String {
    format!("ab-{}", instance.resource_id.trim_start_matches("db-"))
}

fn reported(instance: &Instance, status: &str, latest: Timestamp, place: &Place) -> Value {
    let mut settings = instance.settings.clone();
    storage::report(&mut settings);
    let mut reported = settings.only(snapshot::SAME);
    reported.overlay(&settings.only(SAME));
    let engine = settings.text("Engine");
    reported.set_default("LicenseModel", catalogue::license(engine));
    reported.set("DBInstanceArn", place.arn("db", instance.id()));
    let arn = place.arn("auto-backup", &id_of(instance));
    reported.set("DBInstanceAutomatedBackupsArn", arn);
    reported.set("DbiResourceId", instance.resource_id.clone());
    reported.set("Encrypted", settings.flag("StorageEncrypted"));
    let iam = settings.flag("EnableIAMDatabaseAuthentication");
    reported.set("IAMDatabaseAuthenticationEnabled", iam);
    let created = instance.created.map(|time| time.to_string());
    reported.put("InstanceCreateTime", created);
    reported.set("OptionGroupName", resources::option_group(&settings));
    reported.set("Region", place.name.clone());
    if let Some(earliest) = instance.backed_up {
        let latest = latest.max(earliest).to_string();
        let window = json!({"EarliestTime": earliest.to_string(), "LatestTime": latest});
        reported.set("RestoreWindow", window);
    }
    reported.set("Status", status);
    reported.set("TagList", tags::list(&instance.backup_tags));
    reported.set("VpcId", "vpc-0d15ea5e");
    reported.into()
}
