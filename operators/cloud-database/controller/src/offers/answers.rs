//! Answers of the AWS SDK, as the builder of a catalogue reads them.

use aws_sdk_rds::types::{DbEngineVersion, OrderableDbInstanceOption};
use rds_catalogue::{
    EngineVersion, EngineVersions, OrderableOption, OrderableOptions, UpgradeTarget,
};

pub(crate) fn versions(answer: &[DbEngineVersion]) -> EngineVersions {
    let versions = answer.iter().filter_map(|version| {
        let targets = version.valid_upgrade_target().iter();
        let targets = targets.filter_map(|target| {
            Some(UpgradeTarget {
                engine: target.engine().map(str::to_owned),
                engine_version: target.engine_version()?.to_owned(),
                is_major_version_upgrade: target.is_major_version_upgrade().unwrap_or_default(),
            })
        });
        Some(EngineVersion {
            engine: version.engine()?.to_owned(),
            engine_version: version.engine_version()?.to_owned(),
            status: version.status().map(str::to_owned),
            targets: targets.collect(),
        })
    });
    EngineVersions {
        versions: versions.collect(),
    }
}

pub(crate) fn options(answer: &[OrderableDbInstanceOption]) -> OrderableOptions {
    let options = answer.iter().filter_map(|option| {
        Some(OrderableOption {
            engine: option.engine()?.to_owned(),
            engine_version: option.engine_version()?.to_owned(),
            class: option.db_instance_class()?.to_owned(),
            storage_type: option.storage_type()?.to_owned(),
            min_storage_size: option.min_storage_size().map(f64::from),
            max_storage_size: option.max_storage_size().map(f64::from),
            min_iops_per_db_instance: option.min_iops_per_db_instance().map(f64::from),
            max_iops_per_db_instance: option.max_iops_per_db_instance().map(f64::from),
            min_iops_per_gib: option.min_iops_per_gib(),
            max_iops_per_gib: option.max_iops_per_gib(),
            min_storage_throughput_per_db_instance: option
                .min_storage_throughput_per_db_instance()
                .map(f64::from),
            max_storage_throughput_per_db_instance: option
                .max_storage_throughput_per_db_instance()
                .map(f64::from),
            min_storage_throughput_per_iops: option.min_storage_throughput_per_iops(),
            max_storage_throughput_per_iops: option.max_storage_throughput_per_iops(),
            multi_az_capable: option.multi_az_capable().unwrap_or_default(),
            supports_iam_database_authentication: option
                .supports_iam_database_authentication()
                .unwrap_or_default(),
            supports_enhanced_monitoring: option.supports_enhanced_monitoring().unwrap_or_default(),
            supports_performance_insights: option
                .supports_performance_insights()
                .unwrap_or_default(),
            supports_dedicated_log_volume: option
                .supports_dedicated_log_volume()
                .unwrap_or_default(),
            supports_storage_encryption: option.supports_storage_encryption().unwrap_or_default(),
            supports_storage_autoscaling: option.supports_storage_autoscaling(),
        })
    });
    OrderableOptions {
        options: options.collect(),
    }
}
