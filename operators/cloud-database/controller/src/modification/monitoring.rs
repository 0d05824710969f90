//! Changes of the monitoring.

use lockstep_cloud_database_api::DatabaseInsights;

/// Parameters of `ModifyDBInstance` that are the monitoring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MonitoringChange {
    pub(crate) enhanced: Option<EnhancedChange>,
    pub(crate) insights: Option<InsightsChange>,
    pub(crate) database_insights: Option<DatabaseInsights>,
    pub(crate) log_exports: Option<LogExportsChange>,
}

/// Interval and role of Enhanced Monitoring, which RDS wants together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EnhancedChange {
    pub(crate) interval_seconds: i32,
    pub(crate) role_arn: Option<String>,
}

/// Settings of Performance Insights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InsightsChange {
    pub(crate) enabled: bool,
    pub(crate) retention_days: Option<i32>,
    pub(crate) kms_key: Option<String>,
}

/// Logs whose export begins and ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogExportsChange {
    pub(crate) enable: Vec<String>,
    pub(crate) disable: Vec<String>,
}

impl MonitoringChange {
    /// Returns the spec fields that differ.
    pub(crate) fn fields(&self) -> Vec<(bool, &'static str)> {
        vec![
            (self.enhanced.is_some(), "monitoring.enhanced"),
            (
                self.insights.is_some(),
                "monitoring.performanceInsights.enabled",
            ),
            (
                self.database_insights.is_some(),
                "monitoring.databaseInsights",
            ),
            (self.log_exports.is_some(), "monitoring.logExports"),
        ]
    }

    /// Returns the groups, of which each can be requested alone. The advanced mode of Database Insights needs
    /// Performance Insights.
    pub(crate) fn groups(self) -> [Self; 3] {
        let none = Self::default;
        [
            Self {
                enhanced: self.enhanced,
                ..none()
            },
            Self {
                insights: self.insights,
                database_insights: self.database_insights,
                ..none()
            },
            Self {
                log_exports: self.log_exports,
                ..none()
            },
        ]
    }

    /// Returns the fields of both changes.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            enhanced: self.enhanced.or(other.enhanced),
            insights: self.insights.or(other.insights),
            database_insights: self.database_insights.or(other.database_insights),
            log_exports: self.log_exports.or(other.log_exports),
        }
    }
}
