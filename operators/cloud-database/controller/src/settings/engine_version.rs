//! Difference of the engine version, and the upgrade that it is.

use std::cmp::Ordering;

use aws_sdk_rds::types::{DbInstance, PendingModifiedValues};
use lockstep_cloud_database_api::{CloudDatabaseSpec, compare_versions, version_matches};

use crate::aws::rds_client::request::Request;
use crate::settings::setting::{Compared, Setting};

pub(crate) struct EngineVersion;

/// Version to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    pub(crate) version: String,
    /// If true, it is an upgrade to another major version.
    pub(crate) is_major: bool,
}

impl Upgrade {
    fn minor(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            is_major: false,
        }
    }
}

impl Setting for EngineVersion {
    type Value = Upgrade;
    const FIELD: &'static str = "engineVersion";

    fn desired(spec: &CloudDatabaseSpec) -> Option<Upgrade> {
        spec.engine_version.as_deref().map(Upgrade::minor)
    }

    fn actual(instance: &DbInstance) -> Option<Upgrade> {
        instance.engine_version().map(Upgrade::minor)
    }

    fn pending(pending: &PendingModifiedValues) -> Option<Upgrade> {
        pending.engine_version().map(Upgrade::minor)
    }

    fn change(compared: &Compared<'_>) -> Option<Upgrade> {
        upgrade(compared.spec, compared.instance, compared.waits)
    }

    fn put(value: &Upgrade, request: Request) -> Request {
        let request = request.engine_version(&value.version);
        if value.is_major {
            request.allow_major_version_upgrade(true)
        } else {
            request
        }
    }
}

/// Returns the version to request. It is never lower than the running one: RDS cannot downgrade, and would reject the
/// request. A pending upgrade to a version that the spec does not name or allow is taken back by requesting the running
/// one.
fn upgrade(spec: &CloudDatabaseSpec, instance: &DbInstance, waits: bool) -> Option<Upgrade> {
    let wanted = spec.engine_version.as_deref()?;
    let running = instance.engine_version()?;
    let pending = instance.pending_modified_values();
    let pending = pending.and_then(|it| it.engine_version());
    let is_reached = |version: &str| {
        version_matches(wanted, version) || compare_versions(wanted, version) == Ordering::Equal
    };
    let is_allowed = not_allowed(spec, instance).is_none();
    let stay = || Upgrade::minor(running);
    match pending {
        Some(_) if !is_allowed => Some(stay()),
        Some(pending) if is_reached(pending) && waits => None,
        Some(pending) if is_reached(running) && !is_reached(pending) => Some(stay()),
        _ if is_reached(running) || !is_allowed => None,
        _ => (compare_versions(wanted, running) == Ordering::Greater).then(|| Upgrade {
            version: wanted.to_owned(),
            is_major: spec.engine.is_major_upgrade(running, wanted),
        }),
    }
}

/// Returns what to do for an upgrade to another major version that the spec names and does not allow.
pub(crate) fn not_allowed(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Option<String> {
    let wanted = spec.engine_version.as_deref()?;
    let running = instance.engine_version()?;
    let is_upgrade = spec.engine.is_major_upgrade(running, wanted);
    let major = spec.engine.major_version(wanted);
    (is_upgrade && !spec.allows_major_version(wanted)).then(|| {
        format!(
            "it runs version {running} and is not upgraded to {wanted}, because an upgrade to another major version cannot be undone; set `spec.allowMajorVersionUpgrade` to '{major}' to allow it"
        )
    })
}
