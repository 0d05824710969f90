//! Groups of fields that are modified together. RDS rejects a modification as a whole, so one field that it rejects must
//! not keep those of other groups from being applied.

use crate::modification::Modification;
use crate::modification::storage::StorageChange;

impl Modification {
    /// Returns the parts that are requested separately from the start: network access, so that an instance does not remain
    /// public because of another field; the storage, which other statuses of the instance accept; everything else, in one
    /// request, so that the instance restarts once; and the tags.
    pub(crate) fn requests(mut self) -> [Self; 4] {
        let access = self.take_access();
        let storage = self.take_storage();
        let tags = self.take_tags();
        [access, storage, self, tags]
    }

    /// Returns the groups, of which each can be requested alone.
    pub(crate) fn groups(mut self) -> Vec<Self> {
        let none = Self::default;
        // An instance must not remain public because of a security group. One that becomes public needs its groups.
        let closing = Self {
            publicly_accessible: self.publicly_accessible.take_if(|it| !*it),
            ..none()
        };
        let mut groups = vec![closing, self.take_access()];
        // Full storage must grow even if RDS rejects the maximum of storage autoscaling. The maximum comes first: RDS rejects
        // a size above it.
        groups.push(Self {
            storage: StorageChange {
                max_size_gib: self.storage.max_size_gib.take(),
                ..StorageChange::default()
            },
            ..none()
        });
        groups.push(self.take_storage());
        groups.push(Self {
            instance_class: self.instance_class.take(),
            ..none()
        });
        groups.push(Self {
            multi_az: self.multi_az.take(),
            ..none()
        });
        // A parameter group and an option group belong to a major version, so an upgrade needs them in the same call.
        let is_upgrade = self.engine_version.is_some();
        let parameter_group = self.parameter_group.take();
        let option_group = self.option_group.take();
        groups.push(Self {
            engine_version: self.engine_version.take(),
            parameter_group: parameter_group.clone().filter(|_| is_upgrade),
            option_group: option_group.clone().filter(|_| is_upgrade),
            ..none()
        });
        groups.push(Self {
            auto_minor_version_upgrade: self.auto_minor_version_upgrade.take(),
            ..none()
        });
        groups.push(Self {
            parameter_group: parameter_group.filter(|_| !is_upgrade),
            ..none()
        });
        groups.push(Self {
            option_group: option_group.filter(|_| !is_upgrade),
            ..none()
        });
        groups.push(Self {
            engine_lifecycle_support: self.engine_lifecycle_support.take(),
            ..none()
        });
        groups.push(Self {
            ca_certificate: self.ca_certificate.take(),
            ..none()
        });
        groups.push(Self {
            iam_authentication: self.iam_authentication.take(),
            ..none()
        });
        groups.push(Self {
            network_type: self.network_type.take(),
            ..none()
        });
        groups.push(Self {
            dedicated_log_volume: self.dedicated_log_volume.take(),
            ..none()
        });
        let monitoring = std::mem::take(&mut self.monitoring).groups();
        groups.extend(monitoring.map(|monitoring| Self {
            monitoring,
            ..none()
        }));
        // An instance must not remain without backups because of a window.
        groups.push(Self {
            retention_days: self.retention_days.take(),
            ..none()
        });
        // A window must not overlap the other one as it is now.
        groups.push(Self {
            backup_window: self.backup_window.take(),
            maintenance_window: self.maintenance_window.take(),
            ..none()
        });
        groups.push(Self {
            port: self.port.take(),
            ..none()
        });
        groups.push(Self {
            deletion_protection: self.deletion_protection.take(),
            ..none()
        });
        groups.push(Self {
            copy_tags_to_snapshot: self.copy_tags_to_snapshot.take(),
            ..none()
        });
        groups.push(Self {
            password: self.password.take(),
            ..none()
        });
        groups.push(self.take_tags());
        assert!(self.is_empty(), "each field is in a group");
        groups.retain(|group| !group.is_empty());
        groups
    }

    /// Returns one modification with all fields of these groups.
    pub(crate) fn of(groups: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for group in groups {
            all = Self {
                instance_class: all.instance_class.or(group.instance_class),
                storage: all.storage.or(group.storage),
                engine_version: all.engine_version.or(group.engine_version),
                auto_minor_version_upgrade: all
                    .auto_minor_version_upgrade
                    .or(group.auto_minor_version_upgrade),
                engine_lifecycle_support: all
                    .engine_lifecycle_support
                    .or(group.engine_lifecycle_support),
                parameter_group: all.parameter_group.or(group.parameter_group),
                option_group: all.option_group.or(group.option_group),
                ca_certificate: all.ca_certificate.or(group.ca_certificate),
                iam_authentication: all.iam_authentication.or(group.iam_authentication),
                network_type: all.network_type.or(group.network_type),
                dedicated_log_volume: all.dedicated_log_volume.or(group.dedicated_log_volume),
                monitoring: all.monitoring.or(group.monitoring),
                multi_az: all.multi_az.or(group.multi_az),
                retention_days: all.retention_days.or(group.retention_days),
                backup_window: all.backup_window.or(group.backup_window),
                maintenance_window: all.maintenance_window.or(group.maintenance_window),
                port: all.port.or(group.port),
                deletion_protection: all.deletion_protection.or(group.deletion_protection),
                publicly_accessible: all.publicly_accessible.or(group.publicly_accessible),
                security_groups: all.security_groups.or(group.security_groups),
                copy_tags_to_snapshot: all.copy_tags_to_snapshot.or(group.copy_tags_to_snapshot),
                password: all.password.or(group.password),
                tags: all.tags.or(group.tags),
            };
        }
        all
    }

    fn take_access(&mut self) -> Self {
        Self {
            publicly_accessible: self.publicly_accessible.take(),
            security_groups: self.security_groups.take(),
            ..Self::default()
        }
    }

    fn take_tags(&mut self) -> Self {
        Self {
            tags: self.tags.take(),
            ..Self::default()
        }
    }

    fn take_storage(&mut self) -> Self {
        Self {
            storage: std::mem::take(&mut self.storage),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use lockstep_cloud_database_api::effects::effect_of;
    use lockstep_cloud_database_api::{ApplyChanges, DatabaseInsights, StorageType};

    use super::*;
    use crate::modification::monitoring::{
        EnhancedChange, InsightsChange, LogExportsChange, MonitoringChange,
    };
    use crate::modification::storage::StorageChange;
    use crate::modification::{PasswordChange, TagChange, Upgrade};

    fn everything() -> Modification {
        Modification {
            instance_class: Some("db.m5.large".to_owned()),
            storage: StorageChange {
                storage_type: Some(StorageType::Io1),
                size_gib: Some(200),
                max_size_gib: Some(300),
                iops: Some(2_000),
                throughput_mibps: Some(500),
            },
            engine_version: Some(Upgrade {
                version: "17".to_owned(),
                is_major: true,
            }),
            engine_lifecycle_support: Some("open-source-rds-extended-support"),
            parameter_group: Some("tuned".to_owned()),
            option_group: Some("audited".to_owned()),
            ca_certificate: Some("rds-ca-rsa4096-g1".to_owned()),
            iam_authentication: Some(true),
            network_type: Some("DUAL"),
            dedicated_log_volume: Some(true),
            monitoring: MonitoringChange {
                enhanced: Some(EnhancedChange::default()),
                insights: Some(InsightsChange::default()),
                database_insights: Some(DatabaseInsights::Standard),
                log_exports: Some(LogExportsChange::default()),
            },
            multi_az: Some(true),
            retention_days: Some(3),
            backup_window: Some("03:00-04:00".to_owned()),
            maintenance_window: Some("sun:05:00-sun:06:00".to_owned()),
            port: Some(5_433),
            deletion_protection: Some(true),
            publicly_accessible: Some(false),
            security_groups: Some(vec!["sg-1".to_owned()]),
            copy_tags_to_snapshot: Some(true),
            auto_minor_version_upgrade: Some(false),
            password: Some(PasswordChange::Set("secret".to_owned())),
            tags: Some(TagChange::default()),
        }
    }

    #[test]
    fn groups_and_requests_have_each_field_once() {
        let all = everything();
        let groups = all.clone().groups();
        let fields = |parts: &[Modification]| {
            let mut fields: Vec<_> = parts.iter().flat_map(Modification::fields).collect();
            fields.sort_unstable();
            fields
        };
        let mut expected = all.fields();
        expected.sort_unstable();
        assert_eq!(expected.len(), 30);
        assert_eq!(fields(&groups), expected);
        assert_eq!(fields(&all.clone().requests()), expected);
        assert!(Modification::of(groups) == all);
        assert!(Modification::default().groups().is_empty());
    }

    #[test]
    fn an_upgrade_is_requested_with_the_groups_of_its_major_version() {
        let with = |all: Vec<Modification>, field: &str| {
            let found = all.into_iter().find(|it| it.fields().contains(&field));
            found.expect("a group").fields()
        };
        let groups = everything().groups();
        let expected = ["engineVersion", "parameterGroup", "optionGroup"];
        assert_eq!(with(groups.clone(), "parameterGroup"), expected);
        let automatic = "autoMinorVersionUpgrade";
        assert_eq!(with(groups, automatic), [automatic]);
        let mut without = everything();
        without.engine_version = None;
        assert_eq!(with(without.groups(), "parameterGroup"), ["parameterGroup"]);
    }

    #[test]
    fn an_instance_is_closed_even_if_rds_rejects_a_security_group() {
        let access = |is_public| {
            let change = Modification {
                publicly_accessible: Some(is_public),
                security_groups: Some(vec!["sg-1".to_owned()]),
                ..Modification::default()
            };
            let groups = change.groups();
            groups.iter().map(Modification::fields).collect::<Vec<_>>()
        };
        let (public, groups) = ("network.publiclyAccessible", "network.securityGroups");
        assert_eq!(access(false), [vec![public], vec![groups]]);
        assert_eq!(access(true), [vec![public, groups]]);
    }

    #[test]
    fn the_storage_grows_even_if_rds_rejects_its_maximum() {
        let groups = everything().groups();
        let fields = groups.iter().map(Modification::fields);
        let of_storage = fields.filter(|it| it[0].starts_with("storage."));
        let expected = [
            vec!["storage.maxSizeGib"],
            vec![
                "storage.type",
                "storage.sizeGib",
                "storage.iops",
                "storage.throughputMibps",
            ],
        ];
        assert_eq!(of_storage.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_window_that_rds_rejects_leaves_no_instance_without_backups() {
        let groups = everything().groups();
        let fields = groups.iter().map(Modification::fields);
        let retention = fields.filter(|it| it.contains(&"backup.retentionDays"));
        assert_eq!(retention.collect::<Vec<_>>(), [["backup.retentionDays"]]);
    }

    #[test]
    fn the_effect_of_each_field_is_known() {
        let fields = everything().fields().into_iter();
        let now = ApplyChanges::Immediately;
        let unknown = fields.filter(|field| effect_of(field, now, &[]).is_none());
        let unknown: Vec<_> = unknown.collect();
        // The password is no field of the spec.
        assert_eq!(unknown, ["the password of the master user"]);
    }

    #[test]
    fn network_access_and_storage_are_requested_separately_from_other_fields() {
        let [access, storage, rest, tags] = everything().requests();
        assert_eq!(
            access.fields(),
            ["network.publiclyAccessible", "network.securityGroups"]
        );
        assert!(storage.fields().iter().all(|it| it.starts_with("storage.")));
        assert!(rest.fields().contains(&"instanceClass"));
        assert_eq!(tags.fields(), ["tags"]);
    }
}
