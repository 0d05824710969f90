//! Modifications of an instance, with the parameters of `ModifyDBInstance`.

use lockstep_cloud_database_api::StorageType;

/// Fields with a secure default. Instances that were created without this default may differ in them.
pub(crate) const PUBLICLY_ACCESSIBLE: &str = "network.publiclyAccessible";
pub(crate) const COPY_TAGS_TO_SNAPSHOT: &str = "backup.copyTagsToSnapshot";

/// Modification to request from RDS: the fields that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modification {
    pub(crate) instance_class: Option<String>,
    pub(crate) storage_type: Option<StorageType>,
    pub(crate) size_gib: Option<i32>,
    pub(crate) max_size_gib: Option<i32>,
    pub(crate) iops: Option<i32>,
    pub(crate) throughput_mibps: Option<i32>,
    pub(crate) engine_version: Option<String>,
    pub(crate) multi_az: Option<bool>,
    pub(crate) retention_days: Option<i32>,
    pub(crate) backup_window: Option<String>,
    pub(crate) maintenance_window: Option<String>,
    pub(crate) port: Option<i32>,
    pub(crate) deletion_protection: Option<bool>,
    pub(crate) publicly_accessible: Option<bool>,
    pub(crate) security_groups: Option<Vec<String>>,
    pub(crate) copy_tags_to_snapshot: Option<bool>,
}

impl Modification {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Splits the modification into network access and the other fields. RDS rejects a modification as a whole, and an
    /// instance must not remain public because of another field.
    pub(crate) fn parts(mut self) -> impl Iterator<Item = Self> {
        let access = Self {
            publicly_accessible: self.publicly_accessible.take(),
            security_groups: self.security_groups.take(),
            ..Self::default()
        };
        let parts = [access, self].into_iter();
        parts.filter(|part| !part.is_empty())
    }

    /// Returns the spec fields that differ, for messages.
    pub(crate) fn fields(&self) -> Vec<&'static str> {
        [
            (self.instance_class.is_some(), "instanceClass"),
            (self.storage_type.is_some(), "storage.type"),
            (self.size_gib.is_some(), "storage.sizeGib"),
            (self.max_size_gib.is_some(), "storage.maxSizeGib"),
            (self.iops.is_some(), "storage.iops"),
            (self.throughput_mibps.is_some(), "storage.throughputMibps"),
            (self.engine_version.is_some(), "engineVersion"),
            (self.multi_az.is_some(), "multiAz"),
            (self.retention_days.is_some(), "backup.retentionDays"),
            (self.backup_window.is_some(), "backup.window"),
            (self.maintenance_window.is_some(), "maintenanceWindow"),
            (self.port.is_some(), "port"),
            (self.deletion_protection.is_some(), "deletionProtection"),
            (self.publicly_accessible.is_some(), PUBLICLY_ACCESSIBLE),
            (self.security_groups.is_some(), "network.securityGroups"),
            (self.copy_tags_to_snapshot.is_some(), COPY_TAGS_TO_SNAPSHOT),
        ]
        .into_iter()
        .filter_map(|(differs, field)| differs.then_some(field))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_access_is_modified_separately_from_other_fields() {
        let access = Modification {
            publicly_accessible: Some(false),
            ..Modification::default()
        };
        let rest = Modification {
            size_gib: Some(200),
            ..Modification::default()
        };
        let both = Modification {
            publicly_accessible: Some(false),
            size_gib: Some(200),
            ..Modification::default()
        };
        let parts = |change: &Modification| change.clone().parts().collect::<Vec<_>>();
        assert_eq!(parts(&both), [access.clone(), rest.clone()]);
        assert_eq!(parts(&access), [access]);
        assert_eq!(parts(&rest), [rest]);
        assert_eq!(parts(&Modification::default()), []);
    }
}
