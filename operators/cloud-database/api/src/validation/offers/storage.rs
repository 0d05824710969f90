//! Storage that RDS does not offer with a class.

use rds_catalogue::{Bounds, ClassOffer, StorageOffer};
use serde_json::Value;

use super::request::{NotOffered, Request};

/// Value of a storage setting with the bounds that a storage type has for it.
struct Setting {
    path: &'static str,
    /// Value that is shown.
    value: Option<Value>,
    /// Value that is compared.
    compared: Option<f64>,
    bounds: fn(&StorageOffer) -> Option<Bounds>,
    /// Unit of the bounds.
    unit: &'static str,
}

/// Returns the settings that the class does not have with the storage type. `groups` are the offers of the class.
pub(super) fn not_offered(request: &Request<'_>, groups: &[&ClassOffer]) -> Vec<NotOffered> {
    let storage = &request.spec.storage;
    if !request.has_new_class() && !request.is_new(|old, new| old.storage == new.storage) {
        return Vec::new();
    }
    let class = request.spec.instance_class.as_str();
    let type_ = storage.storage_type.as_str();
    let known: Option<Vec<_>> = groups.iter().map(|it| it.storage.as_ref()).collect();
    let Some(known) = known.filter(|known| !known.is_empty()) else {
        return Vec::new();
    };
    let offered: Vec<_> = known.iter().filter_map(|it| it.get(type_)).collect();
    if offered.is_empty() {
        let names = known.iter().flat_map(|it| it.keys().map(String::as_str));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        return vec![NotOffered {
            path: "spec.storage.type",
            value: type_.into(),
            problem: format!("is not offered with {class}"),
            alternatives: format!("set one of {}", names.join(", ")),
            is_certain: true,
        }];
    }
    let mut found: Vec<_> = settings(request)
        .into_iter()
        .filter_map(|setting| beyond(&setting, &offered, class, type_))
        .collect();
    if let Some(max) = storage.max_size_gib
        && !offered.iter().any(|it| it.autoscaling)
    {
        found.push(NotOffered {
            path: "spec.storage.maxSizeGib",
            value: max.into(),
            problem: format!("needs storage that grows automatically, which is not offered for {type_} with {class}"),
            alternatives: "remove it, or choose another class or storage type".to_owned(),
            is_certain: true,
        });
    }
    found
}

fn settings(request: &Request<'_>) -> Vec<Setting> {
    let storage = &request.spec.storage;
    let number = |value: Option<i32>| value.map(f64::from);
    let shown = |value: Option<i32>| value.map(Value::from);
    let ratio = |value: Option<i32>, by: Option<i32>| {
        let (value, by) = (number(value)?, number(by)?);
        (by > 0.0).then(|| value / by)
    };
    let allocated = request.status.and_then(|it| it.allocated_storage_gib);
    let size = Some(storage.size_gib).filter(|size| Some(*size) != allocated);
    let (iops, throughput) = (storage.iops, storage.throughput_mibps);
    let size_bounds = |it: &StorageOffer| it.size_gib;
    vec![
        Setting {
            path: "spec.storage.sizeGib",
            value: shown(size),
            compared: number(size),
            bounds: size_bounds,
            unit: "GiB",
        },
        Setting {
            path: "spec.storage.maxSizeGib",
            value: shown(storage.max_size_gib),
            compared: number(storage.max_size_gib),
            bounds: size_bounds,
            unit: "GiB",
        },
        Setting {
            path: "spec.storage.iops",
            value: shown(iops),
            compared: number(iops),
            bounds: |it| it.iops,
            unit: "IOPS",
        },
        Setting {
            path: "spec.storage.iops",
            value: shown(iops),
            compared: ratio(iops, Some(storage.size_gib)),
            bounds: |it| it.iops_per_gib,
            unit: "IOPS for each GiB",
        },
        Setting {
            path: "spec.storage.throughputMibps",
            value: shown(throughput),
            compared: number(throughput),
            bounds: |it| it.throughput_mibps,
            unit: "MiB per second",
        },
        Setting {
            path: "spec.storage.throughputMibps",
            value: shown(throughput),
            compared: ratio(throughput, iops),
            bounds: |it| it.throughput_per_iops,
            unit: "MiB per second for each of the IOPS",
        },
    ]
}

/// Returns a setting that is not in the bounds of any offer.
fn beyond(
    setting: &Setting,
    offered: &[&StorageOffer],
    class: &str,
    type_: &str,
) -> Option<NotOffered> {
    let (value, compared) = (setting.value.clone()?, setting.compared?);
    let bounds: Option<Vec<_>> = offered.iter().map(|it| (setting.bounds)(it)).collect();
    // Bounds that are unknown are no limit.
    let bounds = bounds?;
    if bounds.iter().any(|bounds| bounds.contains(compared)) {
        return None;
    }
    let nearest = bounds.first()?;
    let limit = match (nearest.min, nearest.max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => return None,
    };
    Some(NotOffered {
        path: setting.path,
        value,
        problem: format!("is not offered for {type_} with {class}"),
        alternatives: format!("the nearest are {limit} {}", setting.unit),
        is_certain: true,
    })
}
