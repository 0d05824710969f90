//! Search for the instance of an object that is being deleted and that a first description does not list, and for proofs
//! of its deletion. [`absence`](crate::deletion::absence) decides what follows.

use aws_sdk_rds::types::{DbInstance, DbSnapshot};
use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::{FinalizeOutcome, FinalizeRequest, ReconcileError};
use serde_json::Value;

use crate::aws::call_error::CallError;
use crate::deletion::absence::{self, Decision, Evidence};
use crate::deletion::deleted::Deleted;
use crate::deletion::deletion_policy::deletion_began;
use crate::deletion::final_snapshot;
use crate::deletion::refused::DeletionCall;
use crate::instance::drift;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags::{self, ObjectTags};

/// Result of a search.
pub(crate) enum Found {
    /// RDS lists the instance.
    Instance(Box<DbInstance>),
    /// RDS does not list it, with what that means for the object.
    Nothing(Box<FinalizeOutcome>),
}

impl InstanceReconciler {
    /// Looks again for an instance that RDS has not found by its identifier.
    pub(crate) async fn look_again(
        &self,
        deleted: &Deleted<'_>,
        status: &mut CloudDatabaseStatus,
    ) -> Result<Found, StepError> {
        let Deleted {
            request,
            record,
            policy,
            ..
        } = *deleted;
        let id = deleted.id();
        let mut evidence = Evidence {
            requested: record.requested(),
            deletion: record.deletion(),
            policy,
            is_grace_period_over: self.is_past_grace_period(id),
            second: None,
            has_final_snapshot: None,
        };
        let mut second = None;
        if absence::decide(&evidence) == Decision::DescribeAgain {
            let owner = ObjectTags::of_deleted(request.object);
            second = Some(self.describe_again(id, record, &owner).await?);
        }
        evidence.second = second.as_ref();
        if absence::decide(&evidence) == Decision::FindFinalSnapshot {
            let found = self.has_final_snapshot(id, request, record).await;
            let found = found.map_err(|error| error.during(DeletionCall::FindSnapshot))?;
            self.accepted_call(deleted, DeletionCall::FindSnapshot);
            evidence.has_final_snapshot = Some(found);
        }
        let outcome = match absence::decide(&evidence) {
            Decision::Listed(instance) => return Ok(Found::Instance(Box::new(instance.clone()))),
            Decision::Renamed(now) => return Err(self.renamed(id, record, now)),
            Decision::Missing => return Err(missing(id, record).into()),
            Decision::Wait | Decision::DescribeAgain | Decision::FindFinalSnapshot => {
                let waiting = FinalizeOutcome::Waiting(self.unseen(id, status));
                return Ok(Found::Nothing(Box::new(waiting)));
            }
            Decision::Gone => FinalizeOutcome::Done,
            Decision::GoneUnlisted => FinalizeOutcome::Retained(format!(
                "RDS does not list the instance '{id}', and has never listed it. Its creation may have been requested without an answer: if RDS lists it later, delete it there"
            )),
            Decision::GoneUnrecorded => FinalizeOutcome::Retained(format!(
                "RDS does not list the instance '{id}'. The status of the object does not say whether one was requested, and may have been erased; if the object had an instance, this controller has no proof of how it was deleted, and finds no final snapshot '{}'",
                final_snapshot::name(id)
            )),
        };
        self.forget(id);
        Ok(Found::Nothing(Box::new(outcome)))
    }

    /// Returns true if a final snapshot of this deletion exists, which gets the tags of the instance.
    async fn has_final_snapshot(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        record: &Record,
    ) -> Result<bool, StepError> {
        let deletion_time = deletion_began(deleted);
        let request = record.deletion_request.as_ref();
        let mut snapshots = self.rds.snapshots(id).await?;
        if snapshots.is_empty()
            && let Some(name) = request.and_then(|request| request.final_snapshot_id.as_deref())
        {
            // One empty list proves nothing.
            snapshots.extend(self.rds.snapshot(name).await?);
        }
        let mut snapshots = snapshots.iter();
        let Some(snapshot) = snapshots.find(|it| is_final(it, id, deletion_time)) else {
            return Ok(false);
        };
        self.tag_snapshot(deleted.object, snapshot).await?;
        Ok(true)
    }

    /// Adds the tags of the instance to its final snapshot, if RDS has not: it copies them only if the instance is
    /// configured so.
    async fn tag_snapshot(&self, object: &Value, snapshot: &DbSnapshot) -> Result<(), CallError> {
        let expected = tags::of_deleted(object, self.rds.cluster_name());
        let missing = drift::missing_tags(expected, snapshot.tag_list());
        match snapshot.db_snapshot_arn() {
            Some(arn) if !missing.is_empty() => match self.rds.tag(arn, &missing).await {
                // The data is safe, and must not keep the object for ever.
                Err(error) if error.is_rejected() => {
                    tracing::warn!(arn, error = error.text(), "the final snapshot gets no tags");
                    Ok(())
                }
                result => result,
            },
            _ => Ok(()),
        }
    }
}

/// Returns the error for an instance that is absent, and that the controller may not have deleted.
fn missing(id: &str, record: &Record) -> ReconcileError {
    let shown = record.listed_id().unwrap_or_default();
    ReconcileError::Permanent {
        reason: "InstanceMissing",
        message: format!(
            "the RDS instance '{id}' ({shown}) no longer exists, and there is no proof that this controller deleted it: the final snapshot '{}' does not exist. Restore the data if needed, then set `spec.deletionPolicy` to Retain so that the object can be deleted",
            final_snapshot::name(id)
        ),
    }
}

/// Maximum expected clock skew between the API server and RDS, in seconds.
const CLOCK_SKEW: i64 = 60;

/// Returns true if a snapshot is the final snapshot of a deletion that began at `deletion_time`, in seconds since the
/// Unix epoch. An older snapshot is from an earlier instance with the same identifier, or from another client.
fn is_final(snapshot: &DbSnapshot, id: &str, deletion_time: i64) -> bool {
    let name = snapshot.db_snapshot_identifier().unwrap_or_default();
    let is_ours = name.starts_with(&final_snapshot::name(id));
    let has_failed = snapshot.status() == Some("failed");
    // A snapshot that is still being taken has no creation time.
    let time = snapshot.snapshot_create_time();
    let is_of_before = time.is_some_and(|time| time.secs() < deletion_time - CLOCK_SKEW);
    is_ours && !has_failed && !is_of_before
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::primitives::DateTime;

    use super::*;

    #[test]
    fn a_final_snapshot_is_not_older_than_the_deletion() {
        let snapshot = |name: &str, status: &str, time: Option<i64>| {
            let snapshot = DbSnapshot::builder()
                .db_snapshot_identifier(name)
                .status(status)
                .set_snapshot_create_time(time.map(DateTime::from_secs))
                .build();
            is_final(&snapshot, "cdb-1", 1_000)
        };
        assert!(snapshot("cdb-1-final", "available", Some(1_200)));
        assert!(snapshot("cdb-1-final-20261124", "creating", None));
        assert!(snapshot("cdb-1-final", "available", Some(990)), "skewed");
        assert!(!snapshot("cdb-1-final", "available", Some(900)), "earlier");
        assert!(!snapshot("cdb-1-final", "failed", Some(1_200)));
        assert!(!snapshot("cdb-1-by-hand", "available", Some(1_200)));
    }
}
