//! Differences of settings that the spec can leave open.

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{CloudDatabaseSpec, EngineLifecycleSupport, NetworkType};

use crate::drift::difference::differs;
use crate::rds_client::names_minor_version;

/// RDS would upgrade an exact version automatically, and cannot downgrade it again.
pub(super) fn auto_minor_version_upgrade(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
) -> Option<bool> {
    let exact = names_minor_version(spec).then_some(false);
    let wanted = spec.auto_minor_version_upgrade.or(exact);
    wanted.filter(|wanted| {
        let actual = instance.auto_minor_version_upgrade();
        actual.is_some_and(|actual| actual != *wanted)
    })
}

pub(super) fn engine_lifecycle_support(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
) -> Option<&'static str> {
    let wanted = spec.engine_lifecycle_support;
    let wanted = wanted.map(EngineLifecycleSupport::as_str);
    wanted.filter(|wanted| instance.engine_lifecycle_support() != Some(wanted))
}

pub(super) fn ca_certificate(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    waits: bool,
) -> Option<String> {
    let pending = instance.pending_modified_values();
    let pending = pending.and_then(|it| it.ca_certificate_identifier());
    let actual = instance.ca_certificate_identifier();
    let wanted = spec.ca_certificate.clone();
    wanted.filter(|wanted| differs(Some(wanted.as_str()), actual, pending, waits))
}

pub(super) fn iam_authentication(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
    waits: bool,
) -> Option<bool> {
    let pending = instance.pending_modified_values();
    let pending = pending.and_then(|it| it.iam_database_authentication_enabled());
    let actual = instance.iam_database_authentication_enabled();
    let actual = Some(actual.unwrap_or_default());
    let wanted = spec.iam_authentication;
    wanted.filter(|wanted| differs(Some(*wanted), actual, pending, waits))
}

pub(super) fn network_type(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
) -> Option<&'static str> {
    let wanted = spec.network.network_type.map(NetworkType::as_str);
    wanted.filter(|wanted| instance.network_type().is_some_and(|it| it != *wanted))
}

/// It waits for a restart at any time.
pub(super) fn dedicated_log_volume(
    spec: &CloudDatabaseSpec,
    instance: &DbInstance,
) -> Option<bool> {
    let pending = instance.pending_modified_values();
    let pending = pending.and_then(|it| it.dedicated_log_volume());
    let actual = Some(instance.dedicated_log_volume().unwrap_or_default());
    let wanted = spec.dedicated_log_volume;
    wanted.filter(|wanted| differs(Some(*wanted), actual, pending, true))
}
