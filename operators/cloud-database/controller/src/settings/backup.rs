//! Backups, windows, protection and port.

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::CloudDatabaseSpec;

use crate::aws::rds_client::request::Request;
use crate::settings::setting::{Change, Compared, NewInstance, Setting, other_value};

/// Number of days for which the automated backups of a new instance are retained if the spec does not say it. RDS' own
/// default is one day.
pub(crate) const RETENTION_DAYS: i32 = 7;

/// An instance must not remain without backups because of a window, so it goes alone.
pub(crate) struct RetentionDays;

impl Setting for RetentionDays {
    type Value = i32;
    const FIELD: &'static str = "backup.retentionDays";

    fn desired(spec: &CloudDatabaseSpec) -> Option<i32> {
        spec.backup.retention_days
    }

    fn actual(instance: &DbInstance) -> Option<i32> {
        Some(instance.backup_retention_period().unwrap_or_default())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<i32> {
        pending.backup_retention_period()
    }

    fn change(compared: &Compared<'_>) -> Option<i32> {
        let is_open = backup_plan(compared.instance).is_none();
        is_open.then(|| other_value::<Self>(compared)).flatten()
    }

    fn put(value: &i32, request: Request) -> Request {
        request.backup_retention_period(*value)
    }

    /// A restored instance has the backups of its source.
    fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<i32> {
        let default = (new == NewInstance::Empty).then_some(RETENTION_DAYS);
        Self::desired(spec).or(default)
    }
}

pub(super) struct Window;

impl Setting for Window {
    type Value = String;
    const FIELD: &'static str = "backup.window";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        spec.backup.window.clone()
    }

    fn actual(instance: &DbInstance) -> Option<String> {
        Some(
            instance
                .preferred_backup_window()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    fn change(compared: &Compared<'_>) -> Option<String> {
        let is_open = backup_plan(compared.instance).is_none();
        is_open.then(|| other_window::<Self>(compared)).flatten()
    }

    fn put(value: &String, request: Request) -> Request {
        request.preferred_backup_window(value)
    }
}

/// Returns the recovery point of AWS Backup, if one of its plans keeps the automated backups of an instance. RDS accepts only
/// the retention and the window of the plan then:
/// <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/AutomatedBackups.AWSBackup.html>.
fn backup_plan(instance: &DbInstance) -> Option<&str> {
    let recovery_point = instance.aws_backup_recovery_point_arn();
    recovery_point.filter(|arn| !arn.is_empty())
}

/// Returns the difference of the backups that a plan of AWS Backup owns, and that is not requested.
pub(crate) fn owned_by_backup_plan(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
) -> Option<String> {
    let recovery_point = backup_plan(instance)?;
    let days = RetentionDays::actual(instance).unwrap_or_default();
    let window = Window::actual(instance).unwrap_or_default();
    let wants_days = RetentionDays::desired(spec).is_some_and(|wanted| wanted != days);
    let wants_window =
        Window::desired(spec).is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&window));
    let mut fields = Vec::new();
    fields.extend(wants_days.then_some(RetentionDays::FIELD));
    fields.extend(wants_window.then_some(Window::FIELD));
    (!fields.is_empty()).then(|| {
        format!(
            "a plan of AWS Backup keeps its backups ('{recovery_point}') for {days} days, in the window '{window}', and {} is not changed, because RDS refuses it; remove it from the spec, or the instance from the plan",
            fields.join(", ")
        )
    })
}

pub(super) struct MaintenanceWindow;

impl Setting for MaintenanceWindow {
    type Value = String;
    const FIELD: &'static str = "maintenanceWindow";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        spec.maintenance_window.clone()
    }

    fn actual(instance: &DbInstance) -> Option<String> {
        let window = instance.preferred_maintenance_window();
        Some(window.unwrap_or_default().to_owned())
    }

    fn change(compared: &Compared<'_>) -> Option<String> {
        other_window::<Self>(compared)
    }

    /// A window must not overlap the other one as it is now.
    fn goes_with(_: &String, _: &[Change]) -> &'static str {
        Window::FIELD
    }

    fn put(value: &String, request: Request) -> Request {
        request.preferred_maintenance_window(value)
    }
}

/// Returns the window that the spec demands, if the instance has another one. RDS stores windows in lower case.
fn other_window<S: Setting<Value = String>>(compared: &Compared<'_>) -> Option<String> {
    let wanted = S::desired(compared.spec)?;
    let actual = S::actual(compared.instance)?;
    (!actual.eq_ignore_ascii_case(&wanted)).then_some(wanted)
}

pub(crate) struct CopyTagsToSnapshot;

impl Setting for CopyTagsToSnapshot {
    type Value = bool;
    const FIELD: &'static str = "backup.copyTagsToSnapshot";
    const LEFT_ALONE: Option<fn(&bool) -> String> = Some(|wanted| {
        let copies = if *wanted {
            "do not get its tags"
        } else {
            "get its tags"
        };
        format!(
            "its snapshots {copies}, as configured at its creation, and this is not changed; to change it, set CopyTagsToSnapshot to {wanted} in RDS"
        )
    });

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        Some(spec.backup.copy_tags_to_snapshot)
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        instance.copy_tags_to_snapshot()
    }

    fn put(value: &bool, request: Request) -> Request {
        request.copy_tags_to_snapshot(*value)
    }
}

pub(crate) struct DeletionProtection;

impl Setting for DeletionProtection {
    type Value = bool;
    const FIELD: &'static str = "deletionProtection";

    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        spec.deletion_protection
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        Some(instance.deletion_protection().unwrap_or_default())
    }

    fn put(value: &bool, request: Request) -> Request {
        request.deletion_protection(*value)
    }

    fn at_creation(spec: &CloudDatabaseSpec, _: NewInstance) -> Option<bool> {
        Some(Self::desired(spec).unwrap_or_default())
    }
}

pub(crate) struct Port;

impl Setting for Port {
    type Value = i32;
    const FIELD: &'static str = "port";

    fn desired(spec: &CloudDatabaseSpec) -> Option<i32> {
        spec.port
    }

    fn actual(instance: &DbInstance) -> Option<i32> {
        instance.endpoint().and_then(|endpoint| endpoint.port())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<i32> {
        pending.port()
    }

    /// RDS restarts the database at once for another port, also if changes are to wait.
    fn change(compared: &Compared<'_>) -> Option<i32> {
        other_port(compared.spec, compared.instance).filter(|_| !compared.waits)
    }

    fn put(value: &i32, request: Request) -> Request {
        // The name in the calls that create an instance is another one.
        request.db_port_number(*value).port(*value)
    }
}

/// Returns the port that the spec demands, if the instance has another one and is not getting it.
pub(crate) fn other_port(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Option<i32> {
    let wanted = Port::desired(spec)?;
    let pending = instance.pending_modified_values().and_then(Port::pending);
    let actual = pending.or(Port::actual(instance))?;
    (actual != wanted).then_some(wanted)
}
