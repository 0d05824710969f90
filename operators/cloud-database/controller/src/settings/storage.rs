//! Changes of the storage. RDS wants size, IOPS and throughput together where they are provisioned, and neither IOPS nor
//! throughput where they are not: "You must specify both the storage size and iops when modifying the storage size or
//! iops on a DB instance that has iops".

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::{CloudDatabaseSpec, Storage, StorageType};

use crate::aws::rds_client::request::Request;
use crate::instance::record::Record;
use crate::settings::setting::{Call, Change, Compared, NewInstance, Setting};

/// Size from which the IOPS and the throughput of gp3 can be set, in GiB, for PostgreSQL, MySQL and MariaDB.
const GP3_THRESHOLD: i32 = 400;

/// IOPS and throughput of gp3 from its threshold, if none are set.
const GP3_IOPS: i32 = 12_000;
const GP3_THROUGHPUT: i32 = 500;

/// Changes of the settings of the storage, which depend on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StorageChange {
    storage_type: Option<StorageType>,
    size_gib: Option<i32>,
    max_size_gib: Option<i32>,
    iops: Option<i32>,
    throughput_mibps: Option<i32>,
}

pub(crate) struct Type;

impl Setting for Type {
    type Value = StorageType;
    const FIELD: &'static str = "storage.type";
    const CALL: Call = Call::Storage;

    fn desired(spec: &CloudDatabaseSpec) -> Option<StorageType> {
        Some(spec.storage.storage_type)
    }

    fn change(compared: &Compared<'_>) -> Option<StorageType> {
        demanded(compared).storage_type
    }

    fn goes_with(_: &StorageType, _: &[Change]) -> &'static str {
        Size::FIELD
    }

    fn put(value: &StorageType, request: Request) -> Request {
        request.storage_type(value.as_str())
    }

    fn is_pending(instance: &DbInstance) -> bool {
        let pending = instance.pending_modified_values();
        pending.is_some_and(|pending| pending.storage_type().is_some())
    }

    fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<StorageType> {
        Self::desired(spec).filter(|_| has_own_storage(new))
    }
}

/// Returns true if a new instance is created with the storage of the spec. Otherwise it has that of its source, with whose size,
/// which is not known here, RDS would compare every other value.
fn has_own_storage(new: NewInstance) -> bool {
    new == NewInstance::Empty
}

/// Numbers of the storage. RDS changes several with a change of one, so each that is pending is one of the spec.
macro_rules! numbers {
    ($($name:ident: $field:literal with $with:ident, $computed:ident;
       $wanted:expr, $actual:expr, $pending:expr => $put:ident;)+) => {$(
        pub(crate) struct $name;

        impl Setting for $name {
            type Value = i32;
            const FIELD: &'static str = $field;
            const CALL: Call = Call::Storage;

            fn desired(spec: &CloudDatabaseSpec) -> Option<i32> {
                let wanted: fn(&Storage) -> Option<i32> = $wanted;
                wanted(&spec.storage)
            }

            fn actual(instance: &DbInstance) -> Option<i32> {
                let actual: fn(&DbInstance) -> Option<i32> = $actual;
                actual(instance)
            }

            fn pending(values: &PendingModifiedValues) -> Option<i32> {
                let pending: fn(&PendingModifiedValues) -> Option<i32> = $pending;
                pending(values)
            }

            fn change(compared: &Compared<'_>) -> Option<i32> {
                demanded(compared).$computed
            }

            fn goes_with(_: &i32, _: &[Change]) -> &'static str {
                $with::FIELD
            }

            fn put(value: &i32, request: Request) -> Request {
                request.$put(*value)
            }

            fn is_of_spec(_: &CloudDatabaseSpec) -> bool {
                true
            }

            fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<i32> {
                Self::desired(spec).filter(|_| has_own_storage(new))
            }
        }
    )+};
}

// Full storage must grow even if RDS rejects the maximum of storage autoscaling.
numbers! {
    MaxSize: "storage.maxSizeGib" with MaxSize, max_size_gib;
        |storage| storage.max_size_gib, DbInstance::max_allocated_storage, |_| None => max_allocated_storage;
    Size: "storage.sizeGib" with Size, size_gib;
        |storage| Some(storage.size_gib), DbInstance::allocated_storage, PendingModifiedValues::allocated_storage => allocated_storage;
    Iops: "storage.iops" with Size, iops;
        |storage| storage.iops, DbInstance::iops, PendingModifiedValues::iops => iops;
    Throughput: "storage.throughputMibps" with Size, throughput_mibps;
        |storage| storage.throughput_mibps, DbInstance::storage_throughput, PendingModifiedValues::storage_throughput => storage_throughput;
}

/// Returns the change of the storage that the spec demands.
fn demanded(compared: &Compared<'_>) -> StorageChange {
    let instance = compared.instance;
    let pending = instance.pending_modified_values();
    let pending = pending.filter(|_| compared.waits);
    change(&compared.spec.storage, instance, pending, compared.record)
}

/// Storage of an instance.
struct Actual<'a> {
    size: i32,
    storage_type: Option<&'a str>,
    iops: Option<i32>,
    throughput: Option<i32>,
}

impl<'a> Actual<'a> {
    /// Returns the storage after what is `pending`.
    fn new(instance: &'a DbInstance, pending: Option<&'a PendingModifiedValues>) -> Self {
        let size = pending.and_then(PendingModifiedValues::allocated_storage);
        let storage_type = pending.and_then(PendingModifiedValues::storage_type);
        let iops = pending.and_then(PendingModifiedValues::iops);
        let throughput = pending.and_then(PendingModifiedValues::storage_throughput);
        Self {
            size: size.or(instance.allocated_storage()).unwrap_or_default(),
            storage_type: storage_type.or(instance.storage_type()),
            iops: iops.or(instance.iops()),
            throughput: throughput.or(instance.storage_throughput()),
        }
    }
}

/// Returns the change that makes the storage of an instance match the spec. What RDS has accepted and not applied yet, as
/// `pending` says, counts as applied. `record` has the values of the spec that were in effect before: of those that the
/// spec has no more, RDS' own are restored; and the growth that was requested and can be taken back while it is pending.
fn change(
    storage: &Storage,
    instance: &DbInstance,
    pending: Option<&PendingModifiedValues>,
    record: &Record,
) -> StorageChange {
    let applied = record.applied_storage.clone().unwrap_or_default();
    let actual = Actual::new(instance, pending);
    // Storage never shrinks. If it is larger than in the spec, RDS has increased it, as `maxSizeGib` allows. Only a growth
    // that the spec has requested, and that waits, is taken back: its request names the allocated size again.
    let waiting = instance.pending_modified_values();
    let waiting = waiting.and_then(|it| it.allocated_storage());
    let own_growth = waiting.filter(|_| waiting == record.accepted_storage_gib);
    let least = if own_growth.is_some() {
        instance.allocated_storage().unwrap_or_default()
    } else {
        actual.size
    };
    let size = storage.size_gib.max(least);
    let is_gp3 = storage.storage_type == StorageType::Gp3;
    let is_provisioned = is_provisioned(storage.storage_type, size);
    let type_differs = actual.storage_type != Some(storage.storage_type.as_str());
    let size_differs = size != actual.size || own_growth.is_some_and(|growth| growth != size);

    // The value of the spec, or the one that is in effect, if it fits, or RDS' own.
    let or_present = |wanted: Option<i32>, actual: Option<i32>, applied: Option<i32>, own: i32| {
        let is_removed = applied.is_some() && applied == actual;
        let present = actual.filter(|actual| !is_removed && !type_differs && *actual >= own);
        wanted.or(present).or(is_gp3.then_some(own))
    };
    let iops = or_present(storage.iops, actual.iops, applied.iops, GP3_IOPS)
        .or(actual.iops)
        .filter(|_| is_provisioned);
    let throughput = or_present(
        storage.throughput_mibps,
        actual.throughput,
        applied.throughput_mibps,
        GP3_THROUGHPUT,
    )
    .filter(|_| is_provisioned && is_gp3);
    let differs = |wanted: Option<i32>, actual: Option<i32>| wanted.is_some() && wanted != actual;
    let is_changed = type_differs
        || size_differs
        || differs(iops, actual.iops)
        || differs(throughput, actual.throughput);
    let sends_all = is_changed && is_provisioned;
    StorageChange {
        storage_type: type_differs.then_some(storage.storage_type),
        size_gib: (size_differs || sends_all).then_some(size),
        max_size_gib: max_size(storage, instance, size, applied.max_size_gib),
        iops: iops.filter(|_| sends_all),
        throughput_mibps: throughput.filter(|_| sends_all),
    }
}

fn is_provisioned(storage_type: StorageType, size: i32) -> bool {
    match storage_type {
        StorageType::Io1 | StorageType::Io2 => true,
        StorageType::Gp3 => size >= GP3_THRESHOLD,
        StorageType::Gp2 => false,
    }
}

/// Returns the maximum size to set. One that equals the size disables storage autoscaling, and RDS rejects one below. One
/// that the spec has never had is kept, unless the size exceeds it: another client has enabled autoscaling.
fn max_size(
    storage: &Storage,
    instance: &DbInstance,
    size: i32,
    applied: Option<i32>,
) -> Option<i32> {
    let actual = instance.max_allocated_storage();
    let wanted = match storage.max_size_gib {
        Some(max) => Some(max.max(size)),
        // Autoscaling is on if the maximum is above the present size.
        None => actual.filter(|max| {
            (applied == actual || *max < size)
                && *max != size
                && instance
                    .allocated_storage()
                    .is_some_and(|size| size <= *max)
        }),
    };
    match (wanted, storage.max_size_gib) {
        // RDS reports none if it equals the size.
        (Some(max), Some(_)) => {
            Some(max).filter(|max| actual != Some(*max) && (actual.is_some() || *max > size))
        }
        (Some(_), None) => Some(size),
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::types::builders::DbInstanceBuilder;

    use lockstep_cloud_database_api::{AppliedStorage, CloudDatabaseStatus};

    use super::*;

    impl StorageChange {
        fn is_empty(&self) -> bool {
            *self == Self::default()
        }
    }

    fn storage(storage_type: StorageType, size_gib: i32) -> Storage {
        Storage {
            storage_type,
            size_gib,
            max_size_gib: None,
            iops: None,
            throughput_mibps: None,
        }
    }

    fn instance(storage_type: &str, size: i32) -> DbInstanceBuilder {
        DbInstance::builder()
            .storage_type(storage_type)
            .allocated_storage(size)
    }

    fn gp3(size: i32) -> DbInstanceBuilder {
        let (iops, throughput) = if size < GP3_THRESHOLD {
            (3_000, 125)
        } else {
            (GP3_IOPS, GP3_THROUGHPUT)
        };
        instance("gp3", size)
            .iops(iops)
            .storage_throughput(throughput)
    }

    fn recorded(applied: AppliedStorage) -> Record {
        Record::from(CloudDatabaseStatus {
            applied_storage: Some(applied),
            ..CloudDatabaseStatus::default()
        })
    }

    fn of(storage: &Storage, instance: DbInstanceBuilder) -> StorageChange {
        let instance = instance.build();
        let pending = instance.pending_modified_values();
        change(storage, &instance, pending, &Record::default())
    }

    #[test]
    fn growth_below_the_threshold_of_gp3_sends_the_size_alone() {
        let expected = StorageChange {
            size_gib: Some(200),
            ..StorageChange::default()
        };
        assert_eq!(of(&storage(StorageType::Gp3, 200), gp3(100)), expected);
        assert!(of(&storage(StorageType::Gp3, 100), gp3(100)).is_empty());
        assert!(of(&storage(StorageType::Gp3, 100), gp3(300)).is_empty());
    }

    #[test]
    fn growth_where_iops_are_provisioned_sends_everything_even_if_the_spec_names_none() {
        let all = |size: i32, iops: i32, throughput: Option<i32>| StorageChange {
            size_gib: Some(size),
            iops: Some(iops),
            throughput_mibps: throughput,
            ..StorageChange::default()
        };
        // From its threshold on, gp3 has four times the IOPS.
        let grown = of(&storage(StorageType::Gp3, 500), gp3(300));
        assert_eq!(grown, all(500, GP3_IOPS, Some(GP3_THROUGHPUT)));
        let grown = of(&storage(StorageType::Gp3, 700), gp3(500).iops(15_000));
        assert_eq!(grown, all(700, 15_000, Some(GP3_THROUGHPUT)));
        let io = |size: i32| Storage {
            iops: Some(2_000),
            ..storage(StorageType::Io1, size)
        };
        let grown = of(&io(200), instance("io1", 100).iops(2_000));
        assert_eq!(grown, all(200, 2_000, None));
        assert!(of(&io(200), instance("io1", 200).iops(2_000)).is_empty());
    }

    #[test]
    fn a_change_of_the_iops_alone_or_of_the_throughput_alone_sends_the_size_too() {
        let mut wanted = storage(StorageType::Gp3, 500);
        wanted.iops = Some(16_000);
        let changed = of(&wanted, gp3(500));
        let expected = StorageChange {
            size_gib: Some(500),
            iops: Some(16_000),
            throughput_mibps: Some(GP3_THROUGHPUT),
            ..StorageChange::default()
        };
        assert_eq!(changed, expected);
        let mut wanted = storage(StorageType::Gp3, 500);
        wanted.throughput_mibps = Some(1_000);
        let changed = of(&wanted, gp3(500));
        let expected = StorageChange {
            size_gib: Some(500),
            iops: Some(GP3_IOPS),
            throughput_mibps: Some(1_000),
            ..StorageChange::default()
        };
        assert_eq!(changed, expected);
        let mut wanted = storage(StorageType::Io2, 200);
        wanted.iops = Some(3_000);
        let changed = of(&wanted, instance("io2", 300).iops(2_000));
        assert_eq!((changed.size_gib, changed.iops), (Some(300), Some(3_000)));
    }

    #[test]
    fn a_change_of_the_type_sends_what_the_new_type_needs() {
        let changed = of(
            &storage(StorageType::Gp3, 500),
            instance("io1", 500).iops(20_000),
        );
        let expected = StorageChange {
            storage_type: Some(StorageType::Gp3),
            size_gib: Some(500),
            iops: Some(GP3_IOPS),
            throughput_mibps: Some(GP3_THROUGHPUT),
            ..StorageChange::default()
        };
        assert_eq!(changed, expected);
        let changed = of(&storage(StorageType::Gp3, 100), instance("gp2", 100));
        let expected = StorageChange {
            storage_type: Some(StorageType::Gp3),
            ..StorageChange::default()
        };
        assert_eq!(changed, expected);
    }

    #[test]
    fn removed_iops_are_removed_and_those_that_another_client_has_set_are_kept() {
        let instance = gp3(500).iops(16_000).storage_throughput(1_000).build();
        let wanted = storage(StorageType::Gp3, 500);
        let applied = |iops, throughput_mibps| {
            recorded(AppliedStorage {
                iops,
                throughput_mibps,
                max_size_gib: None,
            })
        };
        let changed = change(
            &wanted,
            &instance,
            None,
            &applied(Some(16_000), Some(1_000)),
        );
        assert_eq!(
            (changed.iops, changed.throughput_mibps),
            (Some(GP3_IOPS), Some(GP3_THROUGHPUT))
        );
        assert!(change(&wanted, &instance, None, &applied(None, None)).is_empty());
        // Another client has changed them since.
        let changed = change(&wanted, &instance, None, &applied(Some(14_000), None));
        assert!(changed.is_empty(), "{changed:?}");
    }

    #[test]
    fn a_pending_change_is_not_requested_again() {
        let pending = PendingModifiedValues::builder().allocated_storage(200);
        let instance = gp3(100).pending_modified_values(pending.build());
        assert!(of(&storage(StorageType::Gp3, 200), instance).is_empty());
    }

    #[test]
    fn a_growth_that_waits_is_taken_back_if_the_spec_has_requested_it() {
        let taken_back = |wanted: i32, accepted: Option<i32>| {
            let pending = PendingModifiedValues::builder().allocated_storage(200);
            let instance = gp3(100).pending_modified_values(pending.build()).build();
            let record = Record::from(CloudDatabaseStatus {
                accepted_storage_gib: accepted,
                ..CloudDatabaseStatus::default()
            });
            let pending = instance.pending_modified_values();
            let wanted = storage(StorageType::Gp3, wanted);
            change(&wanted, &instance, pending, &record).size_gib
        };
        assert_eq!(taken_back(100, Some(200)), Some(100));
        assert_eq!(taken_back(150, Some(200)), Some(150));
        assert_eq!(taken_back(50, Some(200)), Some(100), "never less");
        assert_eq!(taken_back(200, Some(200)), None);
        // RDS increases the storage by itself.
        assert_eq!(taken_back(100, Some(100)), None);
        assert_eq!(taken_back(100, None), None);
    }

    #[test]
    fn the_maximum_size_is_never_below_the_size() {
        let max_after = |wanted: Option<i32>,
                         size: i32,
                         actual_size: i32,
                         actual_max: Option<i32>,
                         applied: Option<i32>| {
            let wanted = Storage {
                max_size_gib: wanted,
                ..storage(StorageType::Gp3, size)
            };
            let instance = gp3(actual_size).set_max_allocated_storage(actual_max);
            let record = recorded(AppliedStorage {
                max_size_gib: applied,
                ..AppliedStorage::default()
            });
            change(&wanted, &instance.build(), None, &record).max_size_gib
        };
        let max = |wanted, size, actual_size, actual_max| {
            max_after(wanted, size, actual_size, actual_max, actual_max)
        };
        // Another client has switched autoscaling on, or set another maximum.
        assert_eq!(max_after(None, 100, 100, Some(300), None), None);
        assert_eq!(max_after(None, 100, 100, Some(300), Some(200)), None);
        assert_eq!(max_after(None, 500, 100, Some(300), None), Some(500));
        assert_eq!(max(None, 100, 100, Some(300)), Some(100), "switched off");
        assert_eq!(max(None, 100, 100, Some(100)), None, "is off");
        assert_eq!(max(None, 100, 100, None), None, "was never on");
        // Growth and the removal of the maximum in one edit.
        assert_eq!(max(None, 200, 100, Some(150)), Some(200));
        assert_eq!(max(Some(300), 100, 100, None), Some(300));
        assert_eq!(max(Some(300), 100, 100, Some(300)), None);
        // The storage was increased beyond the maximum of the spec.
        assert_eq!(max(Some(150), 100, 200, Some(500)), Some(200));
        // RDS has switched autoscaling off, and reports no maximum.
        assert_eq!(max(Some(150), 100, 200, None), None);
    }
}
