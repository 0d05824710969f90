//! Snapshots.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::catalogue;
use crate::fields::Fields;
use crate::rules::{storage, tags};
use crate::state::instance::Instance;
use crate::state::place::Place;
use crate::state::resources;

/// Snapshot of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) is_automated: bool,
    /// Settings of the instance when the snapshot was taken.
    pub(crate) settings: Fields,
    pub(crate) resource_id: String,
    pub(crate) password: Option<String>,
    pub(crate) instance_created: Option<Timestamp>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) ready_at: Timestamp,
    pub(crate) listed_from: Timestamp,
    /// Status that a test has set.
    pub(crate) forced: Option<String>,
}

/// Settings that a snapshot reports under the same name.
pub(crate) const SAME: &[&str] = &[
    "AllocatedStorage",
    "AvailabilityZone",
    "DBInstanceIdentifier",
    "DedicatedLogVolume",
    "Engine",
    "EngineVersion",
    "Iops",
    "KmsKeyId",
    "LicenseModel",
    "MasterUsername",
    "Port",
    "StorageThroughput",
    "StorageType",
    "Timezone",
];

impl Snapshot {
    /// Begins to take a snapshot of an instance.
    pub(crate) fn of(instance: &Instance, id: String, ready_at: Timestamp, now: Timestamp) -> Self {
        let copies_tags = instance.settings.flag("CopyTagsToSnapshot");
        Self {
            id,
            is_automated: false,
            settings: instance.settings.clone(),
            resource_id: instance.resource_id.clone(),
            password: instance.password.clone(),
            instance_created: instance.created,
            tags: instance
                .tags
                .clone()
                .into_iter()
                .filter(|_| copies_tags)
                .collect(),
            ready_at,
            listed_from: now,
            forced: None,
        }
    }

    /// Returns the snapshot of an automated backup.
    pub(crate) fn automated(instance: &Instance, at: Timestamp) -> Self {
        let time = at.strftime("%Y-%m-%d-%H-%M");
        let id = format!("rds:{}-{time}", instance.id());
        Self {
            is_automated: true,
            ..Self::of(instance, id, at, at)
        }
    }

    pub(crate) fn status(&self, now: Timestamp) -> &str {
        let status = if self.ready_at <= now {
            "available"
        } else {
            "creating"
        };
        self.forced.as_deref().unwrap_or(status)
    }

    /// Returns the ARN.
    pub(crate) fn arn(&self, place: &Place) -> String {
        place.arn("snapshot", &self.id)
    }

    /// Returns the snapshot as RDS reports it.
    pub(crate) fn reported(&self, place: &Place, now: Timestamp) -> Value {
        let mut settings = self.settings.clone();
        storage::report(&mut settings);
        let mut reported = settings.only(SAME);
        let is_ready = self.ready_at <= now;
        let engine = settings.text("Engine");
        reported.set_default("LicenseModel", catalogue::license(engine));
        reported.set("DBSnapshotIdentifier", self.id.clone());
        reported.set("DBSnapshotArn", self.arn(place));
        reported.set("DbiResourceId", self.resource_id.clone());
        reported.set("Status", self.status(now));
        reported.set("PercentProgress", if is_ready { 100 } else { 0 });
        let kind = if self.is_automated {
            "automated"
        } else {
            "manual"
        };
        reported.set("SnapshotType", kind);
        reported.set("VpcId", "vpc-0d15ea5e");
        reported.set("OptionGroupName", resources::option_group(&settings));
        reported.set("Encrypted", settings.flag("StorageEncrypted"));
        let iam = settings.flag("EnableIAMDatabaseAuthentication");
        reported.set("IAMDatabaseAuthenticationEnabled", iam);
        let created = self.instance_created.map(|time| time.to_string());
        reported.put("InstanceCreateTime", created);
        // A snapshot that is still being taken has no creation time.
        let time = is_ready.then(|| self.ready_at.to_string());
        reported.put("SnapshotCreateTime", time.clone());
        reported.put("OriginalSnapshotCreateTime", time);
        reported.set("TagList", tags::list(&self.tags));
        reported.into()
    }
}
