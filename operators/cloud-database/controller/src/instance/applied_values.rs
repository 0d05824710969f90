//! Values of the spec that an instance has had, recorded in the status. A value that is then removed from the spec is
//! removed from the instance, too, and one that another client has set is kept.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{AppliedStorage, CloudDatabaseSpec};

use crate::settings::{Iops, MaxSize, Setting, Throughput};

/// Returns the settings of the storage to record: those of the spec that are in effect, and those that were and have not
/// been removed yet. Unless it `is_settled`, RDS may be changing the storage to what was in the spec before.
pub(crate) fn storage(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    before: &AppliedStorage,
    is_settled: bool,
) -> AppliedStorage {
    let recorded = |wanted: Option<i32>, actual: Option<i32>, before: Option<i32>| match wanted {
        Some(_) => wanted.filter(|_| wanted == actual).or(before),
        None => before.filter(|_| before == actual || !is_settled),
    };
    let storage = &spec.storage;
    AppliedStorage {
        iops: recorded(storage.iops, instance.iops(), before.iops),
        throughput_mibps: recorded(
            storage.throughput_mibps,
            instance.storage_throughput(),
            before.throughput_mibps,
        ),
        max_size_gib: recorded(
            storage.max_size_gib,
            instance.max_allocated_storage(),
            before.max_size_gib,
        ),
    }
}

/// Returns the settings of the storage to record for an instance that is created with them.
pub(crate) fn storage_at_creation(spec: &CloudDatabaseSpec) -> AppliedStorage {
    let storage = &spec.storage;
    AppliedStorage {
        iops: storage.iops,
        throughput_mibps: storage.throughput_mibps,
        max_size_gib: storage.max_size_gib,
    }
}

/// Adds the settings of the storage of the spec that RDS has accepted just now: these may be removed from the spec before they
/// are compared again.
pub(crate) fn add_requested(
    applied: &mut AppliedStorage,
    spec: &CloudDatabaseSpec,
    fields: &[String],
) {
    let storage = &spec.storage;
    let is_requested = |field: &str| fields.iter().any(|it| it == field);
    if is_requested(MaxSize::FIELD) {
        applied.max_size_gib = storage.max_size_gib.or(applied.max_size_gib);
    }
    if is_requested(Iops::FIELD) {
        applied.iops = storage.iops.or(applied.iops);
    }
    if is_requested(Throughput::FIELD) {
        applied.throughput_mibps = storage.throughput_mibps.or(applied.throughput_mibps);
    }
}

/// Returns the keys of tags to record: those of the spec, and those that were in it before and are not removed yet.
pub(crate) fn tags<'a>(
    spec: &'a CloudDatabaseSpec,
    instance: &DbInstance,
    before: &'a [String],
) -> BTreeSet<&'a str> {
    let has = |key: &str| instance.tag_list().iter().any(|tag| tag.key() == Some(key));
    let before = before.iter().map(String::as_str).filter(|key| has(key));
    let of_spec = spec.tags.keys().map(String::as_str);
    of_spec.chain(before).collect()
}

/// Returns the keys of tags to remove: those that were in the spec before and are not any more.
pub(crate) fn removed_tags(
    expected: &BTreeMap<String, String>,
    instance: &DbInstance,
    before: &[String],
) -> Vec<String> {
    let has = |key: &str| instance.tag_list().iter().any(|tag| tag.key() == Some(key));
    let removed = before.iter();
    let removed = removed.filter(|key| !expected.contains_key(*key) && has(key));
    removed.cloned().collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::types::Tag;

    use super::*;

    #[test]
    fn only_tags_that_were_in_the_spec_are_removed() {
        let tag = |key: &str| Tag::builder().key(key).value("x").build();
        let instance = DbInstance::builder()
            .tag_list(tag("team"))
            .tag_list(tag("stage"))
            .tag_list(tag("cost"))
            .build();
        let expected = [("team".to_owned(), "x".to_owned())].into();
        let before = ["team", "stage", "gone"].map(String::from);
        let removed = removed_tags(&expected, &instance, &before);
        assert_eq!(removed, ["stage"]);
    }
}
