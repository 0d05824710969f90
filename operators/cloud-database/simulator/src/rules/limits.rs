//! Ranges of numbers, and parameters that exclude or require each other.

use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Allowed intervals of Enhanced Monitoring, in seconds.
const MONITORING: &[i64] = &[0, 1, 5, 10, 15, 30, 60];

/// Checks the parameters of an instance that are neither storage nor windows.
pub(crate) fn check(settings: &Fields) -> Result<(), Fault> {
    if let Some(port) = settings
        .number("Port")
        .filter(|port| !(1150..=65535).contains(port))
    {
        return Err(Fault::value(format!(
            "Invalid port {port}: the port must be a value between 1150 and 65535"
        )));
    }
    let retention = settings.number("BackupRetentionPeriod");
    if let Some(days) = retention.filter(|days| !(0..=35).contains(days)) {
        return Err(Fault::value(format!(
            "Invalid backup retention period: {days}. Retention period must be between 0 and 35"
        )));
    }
    monitoring(settings)?;
    performance_insights(settings)?;
    let lifecycle = settings.given_text("EngineLifecycleSupport");
    let suffixes = ["", "-disabled"];
    let is_known = |value: &str| {
        let rest = value.strip_prefix("open-source-rds-extended-support");
        rest.is_some_and(|rest| suffixes.contains(&rest))
    };
    if let Some(value) = lifecycle.filter(|value| !is_known(value)) {
        return Err(Fault::value(format!(
            "Invalid engine lifecycle support: {value}"
        )));
    }
    let type_ = settings.text("StorageType");
    if settings.flag("DedicatedLogVolume") && !["io1", "io2"].contains(&type_) {
        return Err(Fault::combination(format!(
            "A dedicated log volume isn't supported for the storage type {type_}."
        )));
    }
    log_types(settings)
}

/// Returns an error if a request names a role for Enhanced Monitoring and disables it.
pub(crate) fn check_role(parameters: &Fields, settings: &Fields) -> Result<(), Fault> {
    let interval = settings.number("MonitoringInterval").unwrap_or_default();
    if parameters.has("MonitoringRoleArn") && interval == 0 {
        return Err(Fault::combination(
            "You must specify a MonitoringInterval value other than 0 when you specify a MonitoringRoleARN value.",
        ));
    }
    Ok(())
}

fn monitoring(settings: &Fields) -> Result<(), Fault> {
    let interval = settings.number("MonitoringInterval").unwrap_or_default();
    if !MONITORING.contains(&interval) {
        return Err(Fault::value(format!(
            "Invalid monitoring interval {interval}. Must be one of 0, 1, 5, 10, 15, 30, 60"
        )));
    }
    if interval != 0 && !settings.has("MonitoringRoleArn") {
        return Err(Fault::combination(
            "A MonitoringRoleARN value is required if you specify a MonitoringInterval value other than 0.",
        ));
    }
    Ok(())
}

fn performance_insights(settings: &Fields) -> Result<(), Fault> {
    let days = settings.number("PerformanceInsightsRetentionPeriod");
    // The advanced mode keeps data for fifteen months.
    if settings.text("DatabaseInsightsMode") == "advanced" && days.unwrap_or_default() < 465 {
        return Err(Fault::combination(
            "Database Insights in advanced mode requires Performance Insights with a retention period of at least 465 days.",
        ));
    }
    let Some(days) = days else {
        return Ok(());
    };
    let is_months = days % 31 == 0 && (1..=23).contains(&(days / 31));
    if days != 7 && days != 731 && !is_months {
        return Err(Fault::value(format!(
            "Invalid Performance Insights retention period {days}"
        )));
    }
    if !settings.flag("EnablePerformanceInsights") {
        return Err(Fault::combination(
            "Performance Insights must be enabled to set its retention period",
        ));
    }
    Ok(())
}

/// Checks the log types, which depend on the engine.
fn log_types(settings: &Fields) -> Result<(), Fault> {
    let allowed: &[&str] = match settings.text("Engine") {
        "postgres" => &["postgresql", "upgrade", "iam-db-auth-error"],
        _ => &[
            "audit",
            "error",
            "general",
            "slowquery",
            "iam-db-auth-error",
        ],
    };
    let types = settings.texts("EnableCloudwatchLogsExports");
    match types.iter().find(|kind| !allowed.contains(kind)) {
        None => Ok(()),
        Some(kind) => Err(Fault::combination(format!(
            "You cannot use the log types '{kind}' with engine version {} {}. For supported log types, see the documentation.",
            settings.text("Engine"),
            settings.text("EngineVersion"),
        ))),
    }
}
