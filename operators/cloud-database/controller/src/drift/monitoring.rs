//! Differences in the monitoring.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{EnhancedMonitoring, Monitoring, PerformanceInsights};

use crate::modification::monitoring::{
    EnhancedChange, InsightsChange, LogExportsChange, MonitoringChange,
};

/// Returns the change of the monitoring that the spec demands. What it leaves open is left alone.
pub(super) fn change(monitoring: &Monitoring, instance: &DbInstance) -> MonitoringChange {
    let insights = monitoring.performance_insights.as_ref();
    let mode = monitoring.database_insights;
    let exports = monitoring.log_exports.as_deref();
    MonitoringChange {
        enhanced: monitoring
            .enhanced
            .as_ref()
            .and_then(|it| enhanced(it, instance)),
        insights: insights.and_then(|it| performance_insights(it, instance)),
        database_insights: mode.filter(|mode| {
            let actual = instance.database_insights_mode();
            actual.map_or("standard", |it| it.as_str()) != mode.as_str()
        }),
        log_exports: exports.and_then(|it| log_exports(it, instance)),
    }
}

fn enhanced(wanted: &EnhancedMonitoring, instance: &DbInstance) -> Option<EnhancedChange> {
    let interval = instance.monitoring_interval().unwrap_or_default();
    let is_enabled = wanted.interval_seconds != 0;
    let other_role = is_enabled && wanted.role_arn.as_deref() != instance.monitoring_role_arn();
    let differs = interval != wanted.interval_seconds || other_role;
    differs.then(|| EnhancedChange {
        interval_seconds: wanted.interval_seconds,
        role_arn: wanted.role_arn.clone(),
    })
}

fn performance_insights(
    wanted: &PerformanceInsights,
    instance: &DbInstance,
) -> Option<InsightsChange> {
    let is_enabled = instance.performance_insights_enabled().unwrap_or_default();
    let actual = instance.performance_insights_retention_period();
    let retention = wanted.retention_days.filter(|days| actual != Some(*days));
    let differs = is_enabled != wanted.enabled || retention.is_some();
    differs.then(|| InsightsChange {
        enabled: wanted.enabled,
        retention_days: wanted.retention_days,
        // RDS sets the key when Performance Insights is enabled for the first time.
        kms_key: wanted.kms_key.clone().filter(|_| !is_enabled),
    })
}

/// Returns the logs whose export begins and ends. What RDS is changing counts as changed.
fn log_exports(wanted: &[String], instance: &DbInstance) -> Option<LogExportsChange> {
    let pending = instance.pending_modified_values();
    let pending = pending.and_then(|it| it.pending_cloudwatch_logs_exports());
    let enabled = pending.map_or(&[][..], |it| it.log_types_to_enable());
    let disabled = pending.map_or(&[][..], |it| it.log_types_to_disable());
    let actual = instance.enabled_cloudwatch_logs_exports().iter();
    let actual = actual.filter(|name| !disabled.contains(name));
    let actual: Vec<_> = actual.chain(enabled).cloned().collect();
    let without = |all: &[String], others: &[String]| {
        let all = all.iter().filter(|name| !others.contains(name));
        all.cloned().collect::<Vec<_>>()
    };
    let change = LogExportsChange {
        enable: without(wanted, &actual),
        disable: without(&actual, wanted),
    };
    (change != LogExportsChange::default()).then_some(change)
}

/// Returns the difference of the key of Performance Insights, which cannot be changed, if the spec has one that can be
/// compared: RDS reports the ARN, and an alias is not in it.
pub(super) fn other_key(monitoring: &Monitoring, instance: &DbInstance) -> Option<String> {
    let wanted = monitoring.performance_insights.as_ref()?.kms_key.as_ref()?;
    let actual = instance.performance_insights_kms_key_id()?;
    let is_enabled = instance.performance_insights_enabled() == Some(true);
    let is_key = !wanted.contains("alias/");
    let is_same = actual == wanted || actual.ends_with(&format!("/{wanted}"));
    (is_enabled && is_key && !is_same).then(|| {
        format!("the data of Performance Insights has the KMS key '{actual}', and RDS cannot change this")
    })
}
