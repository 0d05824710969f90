//! Where an instance differs from what its object says.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use aws_sdk_rds::types::DbInstance;
use cloud_database_rules::{
    CloudDatabaseSpec, Storage, StorageType, compare_versions, version_matches,
};

/// A change to ask RDS for: what differs, and nothing else.
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
}

impl Modification {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The spec fields that differ, for people.
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
        ]
        .into_iter()
        .filter_map(|(differs, field)| differs.then_some(field))
        .collect()
    }
}

/// What has to change for the instance to be what the object says. What RDS has already agreed to
/// change (`PendingModifiedValues`) counts as changed.
pub(crate) fn between(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Modification {
    let pending = instance.pending_modified_values();
    let storage = &spec.storage;
    let class = pending
        .and_then(|p| p.db_instance_class())
        .or(instance.db_instance_class());
    let actual_size = pending
        .and_then(|p| p.allocated_storage())
        .or(instance.allocated_storage())
        .unwrap_or_default();
    let version = pending
        .and_then(|p| p.engine_version())
        .or(instance.engine_version());
    let multi_az = pending.and_then(|p| p.multi_az()).or(instance.multi_az());
    let retention = pending
        .and_then(|p| p.backup_retention_period())
        .or(instance.backup_retention_period());
    let port = pending
        .and_then(|p| p.port())
        .or(instance.endpoint().and_then(|endpoint| endpoint.port()));
    let iops = pending.and_then(|p| p.iops()).or(instance.iops());
    let throughput = pending
        .and_then(|p| p.storage_throughput())
        .or(instance.storage_throughput());
    let storage_type = pending
        .and_then(|p| p.storage_type())
        .or(instance.storage_type());

    // Storage never shrinks. Above the spec's size it has grown by itself, which is what
    // `maxSizeGib` asks for.
    let grows = storage.size_gib > actual_size;
    let type_differs = storage_type != Some(storage.storage_type.as_str());
    // RDS wants the IOPS again when provisioned storage grows or changes its type.
    let iops_differ = storage.iops.is_some() && (iops != storage.iops || grows || type_differs);
    Modification {
        instance_class: wanted(
            spec.instance_class.clone(),
            class == Some(spec.instance_class.as_str()),
        ),
        storage_type: type_differs.then_some(storage.storage_type),
        size_gib: grows.then_some(storage.size_gib),
        max_size_gib: max_size(storage, instance),
        iops: storage.iops.filter(|_| iops_differ),
        throughput_mibps: storage
            .throughput_mibps
            .filter(|wanted| throughput != Some(*wanted)),
        // Never a lower one: RDS cannot downgrade, and would refuse everything that is asked with it.
        engine_version: spec.engine_version.clone().filter(|wanted| {
            version.is_some_and(|actual| {
                !version_matches(wanted, actual)
                    && compare_versions(wanted, actual) != Ordering::Less
            })
        }),
        multi_az: wanted(spec.multi_az, multi_az.unwrap_or_default() == spec.multi_az),
        retention_days: wanted(
            spec.backup.retention_days,
            retention.unwrap_or_default() == spec.backup.retention_days,
        ),
        backup_window: spec
            .backup
            .window
            .clone()
            .filter(|wanted| instance.preferred_backup_window() != Some(wanted)),
        maintenance_window: spec
            .maintenance_window
            .clone()
            .filter(|wanted| instance.preferred_maintenance_window() != Some(wanted)),
        port: spec
            .port
            .filter(|wanted| port.is_some_and(|actual| actual != *wanted)),
        deletion_protection: wanted(
            spec.deletion_protection,
            instance.deletion_protection().unwrap_or_default() == spec.deletion_protection,
        ),
    }
}

/// The ceiling to ask for; one that equals the allocated size switches autoscaling off.
fn max_size(storage: &Storage, instance: &DbInstance) -> Option<i32> {
    let actual = instance.max_allocated_storage();
    match storage.max_size_gib {
        Some(max) => Some(max).filter(|_| actual != Some(max)),
        None => instance
            .allocated_storage()
            .filter(|size| actual.is_some_and(|max| max > *size)),
    }
}

/// What the instance differs in and no change can mend.
pub(crate) fn beyond_mending(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Vec<String> {
    let mut differences = Vec::new();
    if let (Some(wanted), Some(actual)) = (&spec.credentials.username, instance.master_username())
        && wanted != actual
    {
        differences.push(format!("its master user is '{actual}', as it was created"));
    }
    if let (Some(wanted), Some(actual)) = (&spec.engine_version, instance.engine_version())
        && compare_versions(wanted, actual) == Ordering::Less
    {
        differences.push(format!(
            "it runs version {actual} and cannot go back to {wanted}"
        ));
    }
    differences
}

/// The tags that the instance lacks or has with another value. Tags that others have put there stay.
pub(crate) fn missing_tags(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
) -> BTreeMap<String, String> {
    let has = |key: &str, value: &str| {
        instance
            .tag_list()
            .iter()
            .any(|tag| tag.key() == Some(key) && tag.value() == Some(value))
    };
    let missing = spec.tags.iter().filter(|(key, value)| !has(key, value));
    missing
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn wanted<T>(value: T, stands: bool) -> Option<T> {
    (!stands).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_rds::types::{Endpoint, PendingModifiedValues, Tag};
    use cloud_database_rules::{Backup, Credentials, DeletionPolicy, Engine};

    fn spec() -> CloudDatabaseSpec {
        CloudDatabaseSpec {
            engine: Engine::Postgres,
            engine_version: Some("16".to_owned()),
            instance_class: "db.t4g.micro".to_owned(),
            storage: Storage {
                storage_type: StorageType::Gp3,
                size_gib: 100,
                max_size_gib: None,
                iops: None,
                throughput_mibps: None,
            },
            database_name: None,
            credentials: Credentials {
                username: Some("app".to_owned()),
                secret_name: "s".to_owned(),
                selectors: Default::default(),
            },
            multi_az: false,
            backup: Backup::default(),
            maintenance_window: None,
            port: Some(5432),
            deletion_protection: false,
            deletion_policy: DeletionPolicy::Snapshot,
            tags: Default::default(),
        }
    }

    fn instance() -> aws_sdk_rds::types::builders::DbInstanceBuilder {
        DbInstance::builder()
            .db_instance_class("db.t4g.micro")
            .storage_type("gp3")
            .allocated_storage(100)
            .engine_version("16.4")
            .multi_az(false)
            .backup_retention_period(7)
            .endpoint(Endpoint::builder().address("h").port(5432).build())
            .deletion_protection(false)
    }

    #[test]
    fn an_instance_as_the_object_says_needs_no_change() {
        assert!(between(&spec(), &instance().build()).is_empty());
    }

    #[test]
    fn only_what_differs_is_asked_for() {
        let change = between(
            &spec(),
            &instance()
                .db_instance_class("db.m5.large")
                .multi_az(true)
                .build(),
        );
        assert_eq!(change.fields(), ["instanceClass", "multiAz"]);
    }

    #[test]
    fn storage_that_grew_by_itself_is_left_alone() {
        let mut spec = spec();
        spec.storage.max_size_gib = Some(500);
        let grown = instance()
            .allocated_storage(300)
            .max_allocated_storage(500)
            .build();
        assert!(between(&spec, &grown).is_empty());
    }

    #[test]
    fn growth_of_provisioned_storage_sends_the_iops_again() {
        let mut spec = spec();
        spec.storage = Storage {
            storage_type: StorageType::Io1,
            size_gib: 200,
            iops: Some(2000),
            ..spec.storage
        };
        let change = between(&spec, &instance().storage_type("io1").iops(2000).build());
        assert_eq!((change.size_gib, change.iops), (Some(200), Some(2000)));
    }

    #[test]
    fn a_change_that_is_pending_is_not_asked_for_again() {
        let pending = PendingModifiedValues::builder()
            .db_instance_class("db.t4g.micro")
            .build();
        let instance = instance()
            .db_instance_class("db.m5.large")
            .pending_modified_values(pending)
            .build();
        assert!(between(&spec(), &instance).is_empty());
    }

    #[test]
    fn versions_are_compared_by_component() {
        let mut spec = spec();
        spec.engine_version = Some("16.10".to_owned());
        let change = between(&spec, &instance().engine_version("16.1").build());
        assert_eq!(change.fields(), ["engineVersion"]);
    }

    #[test]
    fn tags_are_added_and_corrected_and_those_of_others_stay() {
        let mut spec = spec();
        spec.tags = [("team", "shop"), ("stage", "prod")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build();
        let instance = instance()
            .tag_list(tag("team", "stock"))
            .tag_list(tag("stage", "prod"))
            .tag_list(tag("cost", "1"));
        assert_eq!(
            missing_tags(&spec, &instance.build()),
            [("team".to_owned(), "shop".to_owned())].into()
        );
    }

    #[test]
    fn a_version_that_rds_has_raised_is_told_and_not_lowered() {
        let mut spec = spec();
        spec.engine_version = Some("16.4".to_owned());
        let raised = instance().engine_version("16.6").build();
        assert!(between(&spec, &raised).is_empty());
        assert_eq!(
            beyond_mending(&spec, &raised),
            ["it runs version 16.6 and cannot go back to 16.4"]
        );
    }

    #[test]
    fn a_ceiling_that_is_taken_away_switches_autoscaling_off() {
        let instance = instance().max_allocated_storage(500);
        assert_eq!(
            between(&spec(), &instance.clone().build()).max_size_gib,
            Some(100)
        );
        let off = instance.max_allocated_storage(100).build();
        assert!(between(&spec(), &off).is_empty());
    }
}
