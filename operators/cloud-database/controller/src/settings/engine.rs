//! Engine, but for its version: automatic upgrades, groups of parameters and options, and the certificate.

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::{CloudDatabaseSpec, EngineLifecycleSupport};

use crate::aws::rds_client::request::Request;
use crate::settings::compute::DedicatedLogVolume;
use crate::settings::engine_version::EngineVersion;
use crate::settings::setting::{Change, Compared, NewInstance, Setting, is_changed};

/// Statuses of an option group that the instance is leaving, or that RDS could not apply.
const NOT_SET: [&str; 4] = [
    "pending-removal",
    "pending-maintenance-removal",
    "removing",
    "failed",
];

/// Status of an option group that waits for the maintenance window.
const WAITS: &str = "pending-maintenance-apply";

pub(crate) struct AutoMinorVersionUpgrade;

impl Setting for AutoMinorVersionUpgrade {
    type Value = bool;
    const FIELD: &'static str = "autoMinorVersionUpgrade";

    /// RDS would upgrade an exact version automatically, and cannot downgrade it again.
    fn desired(spec: &CloudDatabaseSpec) -> Option<bool> {
        let exact = names_minor_version(spec).then_some(false);
        spec.auto_minor_version_upgrade.or(exact)
    }

    fn actual(instance: &DbInstance) -> Option<bool> {
        instance.auto_minor_version_upgrade()
    }

    fn put(value: &bool, request: Request) -> Request {
        request.auto_minor_version_upgrade(*value)
    }

    fn at_creation(spec: &CloudDatabaseSpec, _: NewInstance) -> Option<bool> {
        Some(Self::desired(spec).unwrap_or(true))
    }
}

pub(super) struct LifecycleSupport;

impl Setting for LifecycleSupport {
    type Value = String;
    const FIELD: &'static str = "engineLifecycleSupport";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        let wanted = spec.engine_lifecycle_support;
        wanted.map(EngineLifecycleSupport::as_str).map(String::from)
    }

    fn actual(instance: &DbInstance) -> Option<String> {
        let actual = instance.engine_lifecycle_support();
        Some(actual.unwrap_or_default().to_owned())
    }

    fn put(value: &String, request: Request) -> Request {
        request.engine_lifecycle_support(value)
    }
}

/// RDS stores the names in lower case, and associates a group at once.
pub(crate) struct ParameterGroup;

impl Setting for ParameterGroup {
    type Value = String;
    const FIELD: &'static str = "parameterGroup";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        spec.parameter_group.clone()
    }

    /// While an upgrade that was requested with the group waits for the maintenance window, the group waits, too: the present
    /// version accepts no group of another one.
    fn change(compared: &Compared<'_>) -> Option<String> {
        let Compared { spec, instance, .. } = compared;
        let wanted = Self::desired(spec)?;
        let pending = instance.pending_modified_values();
        let upgrade = pending.and_then(|pending| pending.engine_version());
        let running = instance.engine_version().unwrap_or_default();
        if upgrade.is_some_and(|upgrade| spec.engine.is_major_upgrade(running, upgrade)) {
            return None;
        }
        let mut actual = instance.db_parameter_groups().iter();
        let is_set = actual.any(|group| is_named(group.db_parameter_group_name(), &wanted));
        (!is_set).then_some(wanted)
    }

    fn goes_with(_: &String, all: &[Change]) -> &'static str {
        with_upgrade(Self::FIELD, all)
    }

    fn put(value: &String, request: Request) -> Request {
        request.db_parameter_group_name(value)
    }

    fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<String> {
        Self::desired(spec).filter(|_| takes_groups(spec, new))
    }
}

pub(crate) struct OptionGroup;

impl Setting for OptionGroup {
    type Value = String;
    const FIELD: &'static str = "optionGroup";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        spec.option_group.clone()
    }

    /// A group that waits for the maintenance window counts as set if it is to wait.
    fn change(compared: &Compared<'_>) -> Option<String> {
        let wanted = Self::desired(compared.spec)?;
        let mut actual = compared.instance.option_group_memberships().iter();
        let is_set = actual.any(|group| {
            let status = group.status().unwrap_or_default();
            is_named(group.option_group_name(), &wanted)
                && !NOT_SET.contains(&status)
                && (compared.waits || status != WAITS)
        });
        (!is_set).then_some(wanted)
    }

    fn goes_with(_: &String, all: &[Change]) -> &'static str {
        with_upgrade(Self::FIELD, all)
    }

    fn put(value: &String, request: Request) -> Request {
        request.option_group_name(value)
    }

    fn at_creation(spec: &CloudDatabaseSpec, new: NewInstance) -> Option<String> {
        Self::desired(spec).filter(|_| takes_groups(spec, new))
    }

    fn is_pending(instance: &DbInstance) -> bool {
        let mut groups = instance.option_group_memberships().iter();
        groups.any(|group| group.status() == Some(WAITS))
    }
}

pub(crate) struct CaCertificate;

impl Setting for CaCertificate {
    type Value = String;
    const FIELD: &'static str = "caCertificate";

    fn desired(spec: &CloudDatabaseSpec) -> Option<String> {
        spec.ca_certificate.clone()
    }

    fn actual(instance: &DbInstance) -> Option<String> {
        let actual = instance.ca_certificate_identifier();
        Some(actual.unwrap_or_default().to_owned())
    }

    fn pending(pending: &PendingModifiedValues) -> Option<String> {
        pending.ca_certificate_identifier().map(String::from)
    }

    fn put(value: &String, request: Request) -> Request {
        request.ca_certificate_identifier(value)
    }
}

/// Returns the field with which a group is requested: a parameter group and an option group belong to a major version, so an
/// upgrade needs them in the same call.
fn with_upgrade(alone: &'static str, all: &[Change]) -> &'static str {
    if is_changed::<EngineVersion>(all) {
        EngineVersion::FIELD
    } else {
        alone
    }
}

/// Returns true if a new instance is created with the groups of the spec. RDS creates most replicas with the groups of their source
/// only.
fn takes_groups(spec: &CloudDatabaseSpec, new: NewInstance) -> bool {
    new != NewInstance::Replica && new.has_version_of(spec)
}

fn is_named(actual: Option<&str>, wanted: &str) -> bool {
    actual.is_some_and(|actual| actual.eq_ignore_ascii_case(wanted))
}

/// Returns true if the spec sets more than a major version.
fn names_minor_version(spec: &CloudDatabaseSpec) -> bool {
    let version = spec.engine_version.as_deref();
    version.is_some_and(|version| spec.engine.is_minor_version(version))
}

/// Returns the settings of the spec that RDS has accepted and applies only at the next restart.
pub(crate) fn waiting_for_restart(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Vec<String> {
    let mut waiting = Vec::new();
    let mut groups = instance.db_parameter_groups().iter();
    let is_pending = groups.any(|group| group.parameter_apply_status() == Some("pending-reboot"));
    if let Some(group) = spec.parameter_group.as_ref().filter(|_| is_pending) {
        waiting.push(format!("the parameters of the parameter group '{group}'"));
    }
    let values = instance.pending_modified_values();
    let log_volume = values.and_then(DedicatedLogVolume::pending);
    if log_volume.is_some() && log_volume == DedicatedLogVolume::desired(spec) {
        waiting.push("the change of dedicatedLogVolume".to_owned());
    }
    let waiting = waiting.into_iter();
    waiting
        .map(|what| {
            format!("RDS applies {what} at the next restart of the database, which is not requested; reboot the instance in RDS")
        })
        .collect()
}
