//! Storage: sizes, IOPS and throughput of the storage types, autoscaling, and growth.
//!
//! Sources: `CreateDBInstance` and `ModifyDBInstance` of the API reference, and "Amazon RDS DB instance storage" of the
//! user guide.

use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Size from which gp3 storage is striped, so that its performance can be chosen, in GiB.
const STRIPED: i64 = 400;
const STRIPED_IOPS: i64 = 12_000;
const STRIPED_THROUGHPUT: i64 = 500;

/// Performance of gp3 storage below that size.
const BASE_IOPS: i64 = 3_000;
const BASE_THROUGHPUT: i64 = 125;

/// Parameters of the storage of an instance.
pub(crate) const PARAMETERS: &[&str] = &[
    "AllocatedStorage",
    "StorageType",
    "Iops",
    "StorageThroughput",
];

/// Adds the defaults of a storage, and checks it. The settings contain the parameters of the request, and for a
/// modification those that it does not change.
pub(crate) fn complete(settings: &mut Fields) -> Result<(), Fault> {
    let size = settings
        .number("AllocatedStorage")
        .ok_or_else(|| Fault::missing("AllocatedStorage"))?;
    let type_ = if settings.has("Iops") { "io1" } else { "gp3" };
    settings.set_default("StorageType", type_);
    let engine = settings.text("Engine").to_owned();
    let type_ = settings.text("StorageType").to_owned();
    let sizes = match type_.as_str() {
        "gp2" | "gp3" => 20..=65_536,
        "io1" | "io2" => 100..=65_536,
        "standard" => 5..=3_072,
        _ => return Err(Fault::value(format!("Invalid storage type: {type_}"))),
    };
    if !sizes.contains(&size) {
        return Err(Fault::combination(format!(
            "Invalid storage size for engine name {engine} and storage type {type_}: {size}"
        )));
    }
    let largest = ceiling(settings, size)?;
    if type_ != "gp3" && settings.has("StorageThroughput") {
        return Err(Fault::combination(format!(
            "You can't specify storage throughput for storage type {type_}."
        )));
    }
    match type_.as_str() {
        "gp3" if size >= STRIPED => striped(settings, &engine, size),
        "gp3" if settings.has("Iops") || settings.has("StorageThroughput") => {
            Err(Fault::combination(format!(
                "You can't specify IOPS or storage throughput for engine {engine} and a storage size less than {STRIPED}."
            )))
        }
        "io1" | "io2" => provisioned(settings, &engine, &type_, size, largest),
        "gp2" | "standard" if settings.has("Iops") => Err(Fault::combination(format!(
            "You can't specify IOPS for storage type {type_}."
        ))),
        _ => Ok(()),
    }
}

/// Checks the limit up to which the storage grows automatically, and returns it.
fn ceiling(settings: &Fields, size: i64) -> Result<Option<i64>, Fault> {
    let Some(largest) = settings.number("MaxAllocatedStorage") else {
        return Ok(None);
    };
    if largest <= size {
        return Err(Fault::combination(
            "Max storage size must be greater than storage size",
        ));
    }
    if largest * 10 < size * 11 {
        return Err(Fault::combination(
            "The maximum allocated storage must be increased by at least 10 percent.",
        ));
    }
    Ok(Some(largest))
}

/// Checks gp3 storage whose performance can be chosen.
fn striped(settings: &mut Fields, engine: &str, size: i64) -> Result<(), Fault> {
    settings.set_default("Iops", STRIPED_IOPS);
    settings.set_default("StorageThroughput", STRIPED_THROUGHPUT);
    let iops = settings.number("Iops").unwrap_or_default();
    let throughput = settings.number("StorageThroughput").unwrap_or_default();
    if !(STRIPED_IOPS..=64_000).contains(&iops) {
        return Err(Fault::combination(format!(
            "Invalid iops value for engine name {engine} and storage type gp3: {iops}"
        )));
    }
    if iops > size * 500 {
        return Err(invalid_ratio("storage", engine, "gp3", iops, size));
    }
    if !(STRIPED_THROUGHPUT..=4_000).contains(&throughput) {
        return Err(Fault::combination(format!(
            "Invalid storage throughput value for engine name {engine} and storage type gp3: {throughput}"
        )));
    }
    if throughput * 4 > iops {
        return Err(Fault::combination(format!(
            "Invalid storage throughput to iops ratio for engine name {engine} and storage type gp3: {}",
            ratio(throughput, iops)
        )));
    }
    Ok(())
}

/// Checks storage with provisioned IOPS.
fn provisioned(
    settings: &Fields,
    engine: &str,
    type_: &str,
    size: i64,
    largest: Option<i64>,
) -> Result<(), Fault> {
    let iops = settings.number("Iops").ok_or_else(|| {
        Fault::combination(format!(
            "The storage type {type_} requires iops to be specified."
        ))
    })?;
    if !(1_000..=256_000).contains(&iops) {
        return Err(Fault::combination(format!(
            "Invalid iops value for engine name {engine} and storage type {type_}: {iops}"
        )));
    }
    let most = if type_ == "io1" { 50 } else { 1_000 };
    let is_valid = |size: i64| iops * 2 >= size && iops <= size * most;
    if !is_valid(size) {
        return Err(invalid_ratio("storage", engine, type_, iops, size));
    }
    if let Some(largest) = largest.filter(|largest| !is_valid(*largest)) {
        return Err(invalid_ratio("max storage", engine, type_, iops, largest));
    }
    Ok(())
}

fn invalid_ratio(size_name: &str, engine: &str, type_: &str, iops: i64, size: i64) -> Fault {
    let ratio = ratio(iops, size);
    Fault::combination(format!(
        "Invalid iops to {size_name} (GB) ratio for engine name {engine} and storage type {type_}: {ratio}"
    ))
}

/// Prints a ratio with four decimals.
fn ratio(part: i64, whole: i64) -> String {
    let scaled = part * 10_000 / whole;
    format!("{}.{:04}", scaled / 10_000, scaled % 10_000)
}

/// Checks the storage of a modification against the one that it replaces, and returns the new settings. `requested`
/// are the parameters of the request that differ.
pub(crate) fn modify(current: &Fields, requested: &Fields) -> Result<Fields, Fault> {
    let mut wanted = current.clone();
    // The performance of one type does not pass to another one.
    if requested.has("StorageType") {
        wanted.split_off(&["Iops", "StorageThroughput"]);
    }
    wanted.overlay(requested);
    let before = current.number("AllocatedStorage").unwrap_or_default();
    let size = wanted.number("AllocatedStorage").unwrap_or_default();
    if size < before {
        return Err(Fault::combination(format!(
            "Requested storage size ({size}) cannot be smaller than the current storage size ({before})."
        )));
    }
    if size > before && size * 10 < before * 11 {
        return Err(Fault::combination(
            "The allocated storage must be increased by at least 10 percent.",
        ));
    }
    // An IOPS value of zero leaves provisioned IOPS.
    if wanted.number("Iops") == Some(0) && !["io1", "io2"].contains(&wanted.text("StorageType")) {
        wanted.take("Iops");
    }
    complete(&mut wanted)?;
    Ok(wanted)
}

/// Returns an error if a modification of storage with IOPS does not set all that RDS requires together.
pub(crate) fn require_together(wanted: &Fields, parameters: &Fields) -> Result<(), Fault> {
    let is_modified = PARAMETERS.iter().any(|name| parameters.has(name));
    let has_both = parameters.has("AllocatedStorage") && parameters.has("Iops");
    if is_modified && wanted.has("Iops") && !has_both {
        return Err(Fault::combination(
            "You must specify both the storage size and iops when modifying the storage size or iops on a DB instance that has iops.",
        ));
    }
    Ok(())
}

/// Adds the performance that RDS reports for storage whose performance cannot be chosen.
pub(crate) fn report(settings: &mut Fields) {
    if settings.text("StorageType") == "gp3" {
        settings.set_default("Iops", BASE_IOPS);
        settings.set_default("StorageThroughput", BASE_THROUGHPUT);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(value: Value) -> Fields {
        let Value::Object(fields) = value else {
            panic!("an object is expected");
        };
        Fields::from(fields)
    }

    fn storage(type_: &str, size: i64, iops: Option<i64>, throughput: Option<i64>) -> Fields {
        let mut settings = fields(json!({"Engine": "postgres"}));
        settings.set("StorageType", type_);
        settings.set("AllocatedStorage", size);
        settings.put("Iops", iops);
        settings.put("StorageThroughput", throughput);
        settings
    }

    #[test]
    fn each_storage_type_has_its_sizes_and_its_performance() {
        let check = |type_: &str, size, iops, throughput| {
            complete(&mut storage(type_, size, iops, throughput)).map_err(|error| error.message)
        };
        for (type_, size, iops, throughput) in [
            ("gp2", 20, None, None),
            ("gp3", 399, None, None),
            ("gp3", 400, Some(12_000), Some(3_000)),
            ("gp3", 400, None, None),
            ("io1", 100, Some(5_000), None),
            ("io2", 100, Some(100_000), None),
            ("standard", 5, None, None),
        ] {
            assert_eq!(
                check(type_, size, iops, throughput),
                Ok(()),
                "{type_} {size}"
            );
        }
        for (type_, size, iops, throughput, message) in [
            (
                "gp2",
                19,
                None,
                None,
                "Invalid storage size for engine name postgres and storage type gp2: 19",
            ),
            (
                "gp2",
                100,
                Some(3_000),
                None,
                "can't specify IOPS for storage type gp2",
            ),
            ("gp3", 65_537, None, None, "Invalid storage size"),
            (
                "gp3",
                399,
                Some(3_000),
                None,
                "a storage size less than 400",
            ),
            ("gp3", 399, None, Some(125), "a storage size less than 400"),
            ("gp3", 400, Some(11_999), None, "Invalid iops value"),
            (
                "gp3",
                400,
                Some(12_000),
                Some(3_001),
                "throughput to iops ratio",
            ),
            ("gp3", 400, None, Some(499), "throughput value"),
            ("io1", 100, None, None, "requires iops to be specified"),
            ("io1", 100, Some(5_001), None, "ratio"),
            ("io1", 10_000, Some(3_000), None, "storage type io1: 0.3000"),
            ("io1", 99, Some(1_000), None, "Invalid storage size"),
            ("io2", 100, Some(999), None, "Invalid iops value"),
            (
                "io1",
                100,
                Some(1_000),
                Some(500),
                "can't specify storage throughput",
            ),
            ("gp4", 100, None, None, "Invalid storage type"),
        ] {
            let found = check(type_, size, iops, throughput).expect_err("an error");
            assert!(found.contains(message), "{found}");
        }
    }

    #[test]
    fn the_ceiling_is_at_least_ten_percent_above_the_size() {
        let check = |type_: &str, size, largest: i64| {
            let mut settings = storage(type_, size, (type_ == "io1").then_some(1_000), None);
            settings.set("MaxAllocatedStorage", largest);
            complete(&mut settings).map_err(|error| error.message)
        };
        assert_eq!(check("gp3", 100, 110), Ok(()));
        let found = check("gp3", 100, 100).expect_err("an error");
        assert!(
            found.contains("must be greater than storage size"),
            "{found}"
        );
        let found = check("gp3", 100, 109).expect_err("an error");
        assert!(found.contains("at least 10 percent"), "{found}");
        let found = check("io1", 1_000, 4_000).expect_err("an error");
        assert!(found.contains("iops to max storage (GB) ratio"), "{found}");
    }

    #[test]
    fn storage_grows_by_at_least_ten_percent_and_never_shrinks() {
        let grow = |size: i64| {
            modify(
                &storage("gp3", 100, None, None),
                &fields(json!({"AllocatedStorage": size})),
            )
        };
        assert!(grow(110).is_ok());
        for size in [99, 105] {
            assert_eq!(
                grow(size).expect_err("an error").code,
                "InvalidParameterCombination"
            );
        }
    }

    #[test]
    fn another_storage_type_does_not_keep_the_performance_of_the_former_one() {
        let to_gp2 = fields(json!({"StorageType": "gp2"}));
        let changed =
            modify(&storage("io1", 100, Some(1_000), None), &to_gp2).expect("gp2 storage");
        assert!(!changed.has("Iops"));
        let to_gp3 = fields(json!({"StorageType": "gp3", "Iops": 0}));
        let changed =
            modify(&storage("io1", 100, Some(1_000), None), &to_gp3).expect("gp3 storage");
        assert!(!changed.has("Iops"));
    }

    #[test]
    fn size_and_iops_are_modified_together() {
        let wanted = storage("io1", 200, Some(2_000), None);
        let check = |parameters: Value| require_together(&wanted, &fields(parameters));
        assert!(check(json!({"AllocatedStorage": 200})).is_err());
        assert!(check(json!({"Iops": 2_000})).is_err());
        assert_eq!(
            check(json!({"AllocatedStorage": 200, "Iops": 2_000})),
            Ok(())
        );
        assert_eq!(check(json!({"MultiAZ": true})), Ok(()));
    }
}
