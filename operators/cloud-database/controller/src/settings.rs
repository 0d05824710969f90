//! Settings of an instance: a row for each, which is all that the controller knows about it.
//!
//! A row says what the spec demands, what the instance has, what RDS has accepted and not applied yet, which settings must
//! change in the same call, and which parameter of the call it is. What a change does to clients is a row of
//! `lockstep_cloud_database_api::effects::SETTINGS`.

mod access;
mod backup;
mod compute;
mod credentials;
mod engine;
mod engine_version;
pub(crate) mod monitoring;
mod setting;
mod storage;
mod tags;

use lockstep_cloud_database_api::CloudDatabaseSpec;

use crate::aws::rds_client::request::Request;

#[cfg(test)]
pub(crate) use access::{PubliclyAccessible, SecurityGroups};
#[cfg(test)]
pub(crate) use backup::{CopyTagsToSnapshot, Port, RetentionDays};
pub(crate) use backup::{DeletionProtection, RETENTION_DAYS, other_port, owned_by_backup_plan};
pub(crate) use compute::{InstanceClass, MultiAz};
pub(crate) use credentials::{Password, PasswordChange};
pub(crate) use engine::{
    AutoMinorVersionUpgrade, CaCertificate, OptionGroup, ParameterGroup, waiting_for_restart,
};
#[cfg(test)]
pub(crate) use engine_version::Upgrade;
pub(crate) use engine_version::{EngineVersion, not_allowed};
pub(crate) use monitoring::other_key;
pub(crate) use setting::{Call, Change, Compared, NewInstance, Row, Setting, is_changed};
pub(crate) use storage::{Iops, MaxSize, Size, Throughput};
pub(crate) use tags::{TagChange, Tags};

/// All rows. In this order, changes are requested and reported if RDS rejects them together.
pub(crate) const SETTINGS: [&dyn Row; 31] = [
    &access::PubliclyAccessible,
    &access::SecurityGroups,
    // RDS rejects a size above the maximum.
    &MaxSize,
    &storage::Type,
    &Size,
    &Iops,
    &Throughput,
    &InstanceClass,
    &MultiAz,
    &EngineVersion,
    &AutoMinorVersionUpgrade,
    &engine::LifecycleSupport,
    &ParameterGroup,
    &OptionGroup,
    &CaCertificate,
    &access::IamAuthentication,
    &access::NetworkType,
    &access::CustomerOwnedIp,
    &compute::DedicatedLogVolume,
    &monitoring::Enhanced,
    &monitoring::PerformanceInsights,
    &monitoring::DatabaseInsights,
    &monitoring::LogExports,
    &backup::RetentionDays,
    &backup::Window,
    &backup::MaintenanceWindow,
    &backup::Port,
    &DeletionProtection,
    &backup::CopyTagsToSnapshot,
    &Password,
    &Tags,
];

/// Returns the request for a new instance with the settings of the spec.
pub(crate) fn put_at_creation(
    spec: &CloudDatabaseSpec,
    new: NewInstance,
    request: Request,
) -> Request {
    let rows = SETTINGS.into_iter();
    rows.fold(request, |request, row| {
        row.put_at_creation(spec, new, request)
    })
}

/// Returns the row of a field, by its place in the table.
pub(crate) fn place(field: &str) -> Option<usize> {
    SETTINGS.iter().position(|row| row.field() == field)
}
