//! Modifications of an instance, with the parameters of `ModifyDBInstance`.

pub(crate) mod accepted_changes;
pub(crate) mod groups;
pub(crate) mod monitoring;
pub(crate) mod outcomes;
pub(crate) mod requested;
pub(crate) mod storage;
pub(crate) mod unaccepted_changes;

use std::collections::BTreeMap;

use crate::modification::monitoring::MonitoringChange;
use crate::modification::storage::StorageChange;

/// Fields with a secure default. Instances that were created without this default may differ in them.
pub(crate) const PUBLICLY_ACCESSIBLE: &str = "network.publiclyAccessible";
pub(crate) const COPY_TAGS_TO_SNAPSHOT: &str = "backup.copyTagsToSnapshot";

/// Modification to request from RDS: the fields that differ.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Modification {
    pub(crate) instance_class: Option<String>,
    pub(crate) storage: StorageChange,
    pub(crate) engine_version: Option<Upgrade>,
    pub(crate) auto_minor_version_upgrade: Option<bool>,
    pub(crate) engine_lifecycle_support: Option<&'static str>,
    pub(crate) parameter_group: Option<String>,
    pub(crate) option_group: Option<String>,
    pub(crate) ca_certificate: Option<String>,
    pub(crate) iam_authentication: Option<bool>,
    pub(crate) network_type: Option<&'static str>,
    pub(crate) dedicated_log_volume: Option<bool>,
    pub(crate) monitoring: MonitoringChange,
    pub(crate) multi_az: Option<bool>,
    pub(crate) retention_days: Option<i32>,
    pub(crate) backup_window: Option<String>,
    pub(crate) maintenance_window: Option<String>,
    pub(crate) port: Option<i32>,
    pub(crate) deletion_protection: Option<bool>,
    pub(crate) publicly_accessible: Option<bool>,
    pub(crate) security_groups: Option<Vec<String>>,
    pub(crate) copy_tags_to_snapshot: Option<bool>,
    /// Password of the master user, or who manages it.
    pub(crate) password: Option<PasswordChange>,
    /// Tags, which have calls of their own.
    pub(crate) tags: Option<TagChange>,
}

/// Version to request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Upgrade {
    pub(crate) version: String,
    /// If true, it is an upgrade to another major version.
    pub(crate) is_major: bool,
}

/// Tags to add or change, and keys of those to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagChange {
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) removed: Vec<String>,
}

/// Names of fields of the storage.
pub(crate) const SIZE: &str = "storage.sizeGib";
pub(crate) const MAX_SIZE: &str = "storage.maxSizeGib";
pub(crate) const IOPS: &str = "storage.iops";
pub(crate) const THROUGHPUT: &str = "storage.throughputMibps";

/// Name of the field of a [`PasswordChange`], for messages.
pub(crate) const PASSWORD: &str = "the password of the master user";

/// Change of the password. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PasswordChange {
    /// Sets another password.
    Set(String),
    /// Sets a password on an instance whose password RDS manages, which ends that.
    Unmanage(String),
    /// Lets RDS manage the password in Secrets Manager.
    Manage {
        /// KMS key of the secret.
        kms_key: Option<String>,
    },
}

impl PasswordChange {
    /// Returns the password to set.
    pub(crate) fn password(&self) -> Option<&str> {
        match self {
            Self::Set(password) | Self::Unmanage(password) => Some(password),
            Self::Manage { .. } => None,
        }
    }

    /// Returns true if RDS is to manage the password, false if it no longer is, and none if that does not change.
    pub(crate) fn is_managed(&self) -> Option<bool> {
        match self {
            Self::Set(_) => None,
            Self::Unmanage(_) => Some(false),
            Self::Manage { .. } => Some(true),
        }
    }

    /// Returns the KMS key of the secret.
    pub(crate) fn kms_key(&self) -> Option<&str> {
        match self {
            Self::Manage { kms_key } => kms_key.as_deref(),
            Self::Set(_) | Self::Unmanage(_) => None,
        }
    }
}

impl Modification {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the spec fields that differ, for messages.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        let storage = &self.storage;
        let monitoring = self.monitoring.fields();
        let fields = [
            (self.instance_class.is_some(), "instanceClass"),
            (storage.storage_type.is_some(), "storage.type"),
            (storage.size_gib.is_some(), SIZE),
            (storage.max_size_gib.is_some(), MAX_SIZE),
            (storage.iops.is_some(), IOPS),
            (storage.throughput_mibps.is_some(), THROUGHPUT),
            (self.engine_version.is_some(), "engineVersion"),
            (
                self.auto_minor_version_upgrade.is_some(),
                "autoMinorVersionUpgrade",
            ),
            (
                self.engine_lifecycle_support.is_some(),
                "engineLifecycleSupport",
            ),
            (self.parameter_group.is_some(), "parameterGroup"),
            (self.option_group.is_some(), "optionGroup"),
            (self.ca_certificate.is_some(), "caCertificate"),
            (self.iam_authentication.is_some(), "iamAuthentication"),
            (self.network_type.is_some(), "network.networkType"),
            (self.dedicated_log_volume.is_some(), "dedicatedLogVolume"),
            (self.multi_az.is_some(), "multiAz"),
            (self.retention_days.is_some(), "backup.retentionDays"),
            (self.backup_window.is_some(), "backup.window"),
            (self.maintenance_window.is_some(), "maintenanceWindow"),
            (self.port.is_some(), "port"),
            (self.deletion_protection.is_some(), "deletionProtection"),
            (self.publicly_accessible.is_some(), PUBLICLY_ACCESSIBLE),
            (self.security_groups.is_some(), "network.securityGroups"),
            (self.copy_tags_to_snapshot.is_some(), COPY_TAGS_TO_SNAPSHOT),
            (self.password.is_some(), PASSWORD),
            (self.tags.is_some(), "tags"),
        ];
        let fields = fields.into_iter().chain(monitoring);
        fields
            .filter_map(|(differs, field)| differs.then_some(field))
            .collect()
    }
}
