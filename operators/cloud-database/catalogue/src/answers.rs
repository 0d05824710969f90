//! Answers of RDS, as the AWS CLI prints them: `describe-db-engine-versions` and `describe-orderable-db-instance-options`.

use serde::Deserialize;

/// Answer of `DescribeDBEngineVersions`.
#[derive(Debug, Default, Deserialize)]
pub struct EngineVersions {
    /// Versions.
    #[serde(rename = "DBEngineVersions")]
    pub versions: Vec<EngineVersion>,
}

/// Engine version.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EngineVersion {
    /// Engine.
    pub engine: String,
    /// Version.
    pub engine_version: String,
    /// `available` or `deprecated`.
    #[serde(default)]
    pub status: Option<String>,
    /// Versions to which an instance can be upgraded.
    #[serde(default, rename = "ValidUpgradeTarget")]
    pub targets: Vec<UpgradeTarget>,
}

/// Version to which an instance can be upgraded.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct UpgradeTarget {
    /// Engine, which is not that of the instance if it becomes an instance of Aurora.
    #[serde(default)]
    pub engine: Option<String>,
    /// Version.
    pub engine_version: String,
    /// If true, it is another major version.
    #[serde(default)]
    pub is_major_version_upgrade: bool,
}

/// Answer of `DescribeOrderableDBInstanceOptions`.
#[derive(Debug, Default, Deserialize)]
pub struct OrderableOptions {
    /// Options.
    #[serde(rename = "OrderableDBInstanceOptions")]
    pub options: Vec<OrderableOption>,
}

/// Engine version, class and storage type that an instance can have together.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "RDS has one for each capability"
)]
pub struct OrderableOption {
    /// Engine.
    pub engine: String,
    /// Version.
    pub engine_version: String,
    /// Class.
    #[serde(rename = "DBInstanceClass")]
    pub class: String,
    /// Storage type.
    pub storage_type: String,
    /// Least storage, in GiB.
    pub min_storage_size: Option<f64>,
    /// Greatest storage, in GiB.
    pub max_storage_size: Option<f64>,
    /// Least number of provisioned IOPS.
    pub min_iops_per_db_instance: Option<f64>,
    /// Greatest number of provisioned IOPS.
    pub max_iops_per_db_instance: Option<f64>,
    /// Least number of provisioned IOPS for each GiB.
    pub min_iops_per_gib: Option<f64>,
    /// Greatest number of provisioned IOPS for each GiB.
    pub max_iops_per_gib: Option<f64>,
    /// Least throughput, in MiB per second.
    pub min_storage_throughput_per_db_instance: Option<f64>,
    /// Greatest throughput, in MiB per second.
    pub max_storage_throughput_per_db_instance: Option<f64>,
    /// Least throughput for each of the IOPS.
    pub min_storage_throughput_per_iops: Option<f64>,
    /// Greatest throughput for each of the IOPS.
    pub max_storage_throughput_per_iops: Option<f64>,
    /// Multi-AZ.
    #[serde(rename = "MultiAZCapable")]
    pub multi_az_capable: bool,
    /// Authentication with IAM.
    #[serde(rename = "SupportsIAMDatabaseAuthentication")]
    pub supports_iam_database_authentication: bool,
    /// Enhanced Monitoring.
    pub supports_enhanced_monitoring: bool,
    /// Performance Insights.
    pub supports_performance_insights: bool,
    /// Dedicated log volume.
    pub supports_dedicated_log_volume: bool,
    /// Encryption of the storage.
    pub supports_storage_encryption: bool,
    /// Automatic growth of the storage.
    pub supports_storage_autoscaling: Option<bool>,
}
