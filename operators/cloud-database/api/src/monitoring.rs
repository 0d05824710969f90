//! Monitoring of an instance.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Monitoring of an instance. What is not set is not enabled when the instance is created, and later changes made in
/// RDS are kept.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.databaseInsights) || self.databaseInsights != 'Advanced' || (has(self.performanceInsights) && self.performanceInsights.enabled && has(self.performanceInsights.retentionDays) && self.performanceInsights.retentionDays >= 465)")
    .message("may be Advanced only if `performanceInsights.enabled` is true and `performanceInsights.retentionDays` is at least 465 [database-insights-advanced]")
    .field_path(".databaseInsights"))]
pub struct Monitoring {
    /// Enhanced Monitoring: metrics of the operating system, in CloudWatch Logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<EnhancedMonitoring>,

    /// Performance Insights: the load of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_insights: Option<PerformanceInsights>,

    /// Mode of Database Insights. `Advanced` needs Performance Insights with a retention of at least 465 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_insights: Option<DatabaseInsights>,

    /// Logs that are exported to CloudWatch Logs. PostgreSQL has `postgresql`, `upgrade` and `iam-db-auth-error`; MySQL
    /// and MariaDB have `audit`, `error`, `general`, `slowquery` and `iam-db-auth-error`. An empty list ends all
    /// exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schemas::log_exports")]
    pub log_exports: Option<Vec<String>>,
}

/// Enhanced Monitoring.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.intervalSeconds == 0 || has(self.roleArn)")
        .message("is required unless `intervalSeconds` is 0 [monitoring-role-required]")
        .reason(Reason::FieldValueRequired)
        .field_path(".roleArn"),
    validation = Rule::new("self.intervalSeconds != 0 || !has(self.roleArn)")
        .message("may be set only if `intervalSeconds` is not 0 [monitoring-role-without-interval]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".roleArn")
)]
pub struct EnhancedMonitoring {
    /// Interval of the metrics in seconds. 0 disables Enhanced Monitoring.
    #[schemars(extend("enum" = [0, 1, 5, 10, 15, 30, 60]))]
    pub interval_seconds: i32,

    /// ARN of the IAM role with which RDS writes the metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 2048),
        regex(pattern = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$")
    )]
    pub role_arn: Option<String>,
}

/// Performance Insights.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.enabled || !has(self.retentionDays)")
        .message("may be set only if `enabled` is true [insights-retention-without-insights]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".retentionDays"),
    validation = Rule::new("self.enabled || !has(self.kmsKey)")
        .message("may be set only if `enabled` is true [insights-key-without-insights]")
        .reason(Reason::FieldValueForbidden)
        .field_path(".kmsKey")
)]
pub struct PerformanceInsights {
    /// If true, Performance Insights is enabled.
    pub enabled: bool,

    /// Number of days for which the data is retained: 7, a multiple of 31 up to 713, or 731. If not set, RDS retains it
    /// for 7 days, and later changes made in RDS are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 7, max = 731))]
    #[x_kube(validation = Rule::new("self == 7 || self == 731 || (self % 31 == 0 && self <= 713)")
        .message("must be 7, a multiple of 31 up to 713, or 731 [insights-retention-period]"))]
    pub retention_days: Option<i32>,

    /// KMS key of the data, by key ID, ARN, alias or alias ARN. Defaults to the account's default KMS key for RDS. RDS
    /// sets it when Performance Insights is enabled for the first time, and cannot change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^[A-Za-z0-9:/_-]+$"))]
    pub kms_key: Option<String>,
}

/// Mode of Database Insights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum DatabaseInsights {
    /// Basic features.
    Standard,
    /// All features, at an additional charge.
    Advanced,
}

impl DatabaseInsights {
    /// Returns the name of the mode in RDS.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Advanced => "advanced",
        }
    }
}
