//! Monitoring. What the spec leaves open is left alone.

use aws_sdk_rds::types::{
    CloudwatchLogsExportConfiguration, DbInstance, PendingCloudwatchLogsExports,
};
use lockstep_cloud_database_api::{self as api, CloudDatabaseSpec, EnhancedMonitoring, Monitoring};

use crate::aws::rds_client::request::Request;
use crate::settings::setting::{Change, Compared, NewInstance, Setting};

/// Interval and role of Enhanced Monitoring, which RDS wants together.
pub(crate) struct Enhanced;

impl Setting for Enhanced {
    type Value = EnhancedMonitoring;
    const FIELD: &'static str = "monitoring.enhanced";

    fn desired(spec: &CloudDatabaseSpec) -> Option<EnhancedMonitoring> {
        spec.monitoring.as_ref()?.enhanced.clone()
    }

    fn actual(instance: &DbInstance) -> Option<EnhancedMonitoring> {
        Some(EnhancedMonitoring {
            interval_seconds: instance.monitoring_interval().unwrap_or_default(),
            role_arn: instance.monitoring_role_arn().map(String::from),
        })
    }

    fn change(compared: &Compared<'_>) -> Option<EnhancedMonitoring> {
        let wanted = Self::desired(compared.spec)?;
        let actual = Self::actual(compared.instance)?;
        let is_enabled = wanted.interval_seconds != 0;
        let other_role = is_enabled && wanted.role_arn != actual.role_arn;
        (actual.interval_seconds != wanted.interval_seconds || other_role).then_some(wanted)
    }

    fn put(value: &EnhancedMonitoring, request: Request) -> Request {
        let request = request.monitoring_interval(value.interval_seconds);
        match &value.role_arn {
            Some(role) => request.monitoring_role_arn(role),
            None => request,
        }
    }
}

pub(super) struct PerformanceInsights;

impl Setting for PerformanceInsights {
    type Value = api::PerformanceInsights;
    const FIELD: &'static str = "monitoring.performanceInsights.enabled";

    fn desired(spec: &CloudDatabaseSpec) -> Option<api::PerformanceInsights> {
        spec.monitoring.as_ref()?.performance_insights.clone()
    }

    fn actual(instance: &DbInstance) -> Option<api::PerformanceInsights> {
        Some(api::PerformanceInsights {
            enabled: instance.performance_insights_enabled().unwrap_or_default(),
            retention_days: instance.performance_insights_retention_period(),
            kms_key: instance.performance_insights_kms_key_id().map(String::from),
        })
    }

    /// RDS sets the key when Performance Insights is enabled for the first time.
    fn change(compared: &Compared<'_>) -> Option<api::PerformanceInsights> {
        let wanted = Self::desired(compared.spec)?;
        let actual = Self::actual(compared.instance)?;
        let other_retention =
            wanted.retention_days.is_some() && wanted.retention_days != actual.retention_days;
        let differs = wanted.enabled != actual.enabled || other_retention;
        differs.then(|| api::PerformanceInsights {
            kms_key: wanted.kms_key.filter(|_| !actual.enabled),
            ..wanted
        })
    }

    fn put(value: &api::PerformanceInsights, request: Request) -> Request {
        let mut request = request.enable_performance_insights(value.enabled);
        if let Some(days) = value.retention_days {
            request = request.performance_insights_retention_period(days);
        }
        if let Some(kms_key) = &value.kms_key {
            request = request.performance_insights_kms_key_id(kms_key);
        }
        request
    }
}

/// Mode of Database Insights, with the state of Performance Insights that the advanced one needs. RDS wants it in the same call,
/// also if the instance has it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InsightsMode {
    mode: api::DatabaseInsights,
    performance_insights: Option<api::PerformanceInsights>,
}

pub(super) struct DatabaseInsights;

impl Setting for DatabaseInsights {
    type Value = InsightsMode;
    const FIELD: &'static str = "monitoring.databaseInsights";

    fn desired(spec: &CloudDatabaseSpec) -> Option<InsightsMode> {
        let mode = spec.monitoring.as_ref()?.database_insights?;
        let needed = PerformanceInsights::desired(spec);
        Some(InsightsMode {
            mode,
            performance_insights: needed.filter(|_| mode == api::DatabaseInsights::Advanced),
        })
    }

    fn change(compared: &Compared<'_>) -> Option<InsightsMode> {
        let wanted = Self::desired(compared.spec)?;
        let mode = compared.instance.database_insights_mode();
        let differs = mode.map_or("standard", |mode| mode.as_str()) != wanted.mode.as_str();
        differs.then_some(wanted)
    }

    fn goes_with(_: &InsightsMode, _: &[Change]) -> &'static str {
        PerformanceInsights::FIELD
    }

    fn put(value: &InsightsMode, request: Request) -> Request {
        let request = request.database_insights_mode(value.mode.as_str().into());
        let Some(insights) = &value.performance_insights else {
            return request;
        };
        let needed = api::PerformanceInsights {
            // RDS sets it when Performance Insights is enabled for the first time, and that is a change of its own.
            kms_key: None,
            ..insights.clone()
        };
        PerformanceInsights::put(&needed, request)
    }
}

/// Logs whose export begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogExportsChange {
    pub(crate) enable: Vec<String>,
    pub(crate) disable: Vec<String>,
}

pub(crate) struct LogExports;

impl Setting for LogExports {
    type Value = LogExportsChange;
    const FIELD: &'static str = "monitoring.logExports";

    fn desired(spec: &CloudDatabaseSpec) -> Option<LogExportsChange> {
        let enable = spec.monitoring.as_ref()?.log_exports.clone()?;
        let disable = Vec::new();
        Some(LogExportsChange { enable, disable })
    }

    fn change(compared: &Compared<'_>) -> Option<LogExportsChange> {
        let wanted = Self::desired(compared.spec)?.enable;
        let actual = exported(compared.instance);
        let without = |logs: &[String], others: &[String]| {
            let logs = logs.iter().filter(|log| !others.contains(log));
            logs.cloned().collect::<Vec<_>>()
        };
        let enable = without(&wanted, &actual);
        let disable = without(&actual, &wanted);
        let differs = !enable.is_empty() || !disable.is_empty();
        differs.then_some(LogExportsChange { enable, disable })
    }

    fn put(value: &LogExportsChange, request: Request) -> Request {
        let logs = CloudwatchLogsExportConfiguration::builder()
            .set_enable_log_types(Some(value.enable.clone()))
            .set_disable_log_types(Some(value.disable.clone()))
            .build();
        let request = request.cloudwatch_logs_export_configuration(logs);
        // The calls that create an instance take a list.
        let logs = value.enable.iter();
        logs.fold(request, |request, log| {
            request.enable_cloudwatch_logs_exports(log)
        })
    }

    fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<LogExportsChange> {
        Self::desired(spec).filter(|_| new.has_version_of(spec))
    }

    fn is_pending(instance: &DbInstance) -> bool {
        pending_exports(instance).is_some()
    }
}

/// Returns the logs that are exported once RDS has made the changes that it has accepted.
fn exported(instance: &DbInstance) -> Vec<String> {
    let pending = pending_exports(instance);
    let begin = pending.map_or(&[][..], PendingCloudwatchLogsExports::log_types_to_enable);
    let end = pending.map_or(&[][..], PendingCloudwatchLogsExports::log_types_to_disable);
    let present = instance.enabled_cloudwatch_logs_exports().iter();
    let remaining = present.filter(|log| !end.contains(log));
    remaining.chain(begin).cloned().collect()
}

fn pending_exports(instance: &DbInstance) -> Option<&PendingCloudwatchLogsExports> {
    let pending = instance.pending_modified_values()?;
    pending.pending_cloudwatch_logs_exports()
}

/// Returns the difference of the key of Performance Insights, which cannot be changed, if the spec has one that can be
/// compared: RDS reports the ARN, and an alias is not in it.
pub(crate) fn other_key(monitoring: &Monitoring, instance: &DbInstance) -> Option<String> {
    let wanted = monitoring.performance_insights.as_ref()?.kms_key.as_ref()?;
    let actual = instance.performance_insights_kms_key_id()?;
    let is_enabled = instance.performance_insights_enabled() == Some(true);
    let is_key = !wanted.contains("alias/");
    let is_same = actual == wanted || actual.ends_with(&format!("/{wanted}"));
    (is_enabled && is_key && !is_same).then(|| {
        format!("the data of Performance Insights has the KMS key '{actual}', and RDS cannot change this")
    })
}
