//! Changes of an instance that the status records once RDS has accepted them, and what it records of the storage.

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::SignedDuration;
use lockstep_cloud_database_api::{AppliedStorage, CloudDatabaseStatus, LastChange};

use crate::clock;
use crate::instance::described::{Described, meaning_of};
use crate::instance::instance_status::Accepts;
use crate::instance::modification::outcomes::Outcomes;
use crate::instance::record::Record;
use crate::instance::{applied_values, drift};
use crate::settings::{MaxSize, Setting, Size};

/// Time after which RDS certainly reports a change that it has accepted and not applied.
const SHOWN_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// Records what RDS has accepted in a reconciliation, and the storage of the spec that has been in effect.
pub(crate) fn record(
    described: &Described<'_>,
    status: &mut CloudDatabaseStatus,
    outcomes: &Outcomes,
) {
    let Described {
        instance, record, ..
    } = *described;
    let spec = described.spec();
    let changed = outcomes.requested_fields();
    let now = clock::text();
    if is_cancelled(instance, record) {
        status.accepted_storage_gib = None;
    }
    if outcomes.has_requested(Size::FIELD) {
        status.accepted_storage_gib = Some(spec.storage.size_gib);
    }
    // A maximum alone does not change the storage.
    let is_of_storage = |field: &String| field.starts_with("storage.") && *field != MaxSize::FIELD;
    if changed.iter().any(is_of_storage) {
        status.storage_modified_at = Some(now.clone());
    }
    let before = record.applied_storage.clone().unwrap_or_default();
    let mut applied =
        applied_values::storage(spec, instance, &before, is_settled(instance, record));
    applied_values::add_requested(&mut applied, spec, &changed);
    status.applied_storage = Some(applied).filter(|applied| *applied != AppliedStorage::default());
    if !changed.is_empty() {
        status.last_change = Some(LastChange {
            time: now,
            fields: changed,
        });
    }
}

/// Returns true if RDS does not allocate an accepted size of the storage any more: a client has cancelled the change. RDS
/// reports a change that it has just accepted only after some time.
fn is_cancelled(instance: &DbInstance, record: &Record) -> bool {
    let Some(accepted) = record.accepted_storage_gib else {
        return false;
    };
    let pending = instance.pending_modified_values();
    let is_pending = pending.is_some_and(|values| values.allocated_storage().is_some());
    let is_allocated = instance
        .allocated_storage()
        .is_none_or(|allocated| allocated >= accepted);
    let is_idle = meaning_of(instance).accepts == Accepts::All;
    is_idle && !is_pending && !is_allocated && !is_recent(record)
}

/// Returns true unless RDS may be changing the storage, or may not report a change yet.
fn is_settled(instance: &DbInstance, record: &Record) -> bool {
    let pending = drift::pending(instance);
    let is_pending = pending.iter().any(|field| field.starts_with("storage."));
    meaning_of(instance).accepts == Accepts::All && !is_pending && !is_recent(record)
}

/// Returns true if RDS has accepted a change of the storage a short time ago.
fn is_recent(record: &Record) -> bool {
    let modified = record.storage_modified_at();
    let since = modified.map(|at| clock::now().duration_since(at));
    since.is_some_and(|since| since < SHOWN_AFTER)
}
