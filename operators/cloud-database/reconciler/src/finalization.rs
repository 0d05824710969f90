//! Finalization: the deletion of an instance with its object.
//!
//! locate → describe → record the request → delete → confirm that it is gone
//!
//! Every step may be the last of this process. The request is recorded before it is sent, so that an instance that is
//! gone afterwards is distinguished from one that was deleted by another client.

use std::time::Duration;

use aws_sdk_rds::types::{DbInstance, DbSnapshot};
use cloud_database_rules::{DeletionPolicy, DeletionRequest};
use controller::{FinalizeOutcome, FinalizeRequest, ReconcileError, ReconcileOutput};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::deletion;
use crate::modification::Modification;
use crate::reconciler::{
    CloudDatabaseReconciler, fields, identifier, observed, require_ours, with_status,
};
use crate::record::RecordedInstance;

/// States in which RDS takes no final snapshot (`DeleteDBInstance`, `SkipFinalSnapshot`).
const WITHOUT_SNAPSHOT: &[&str] = &["failed", "incompatible-network", "incompatible-restore"];

impl CloudDatabaseReconciler {
    pub(crate) async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let uid = uid_of(deleted);
        let id = identifier(uid)?;
        let record = RecordedInstance::from_status(deleted.object, &id);
        let policy = deletion::safer_policy(deleted);
        if policy == DeletionPolicy::Retain {
            let place = record.arn.map_or(String::new(), |arn| format!(" ({arn})"));
            return Ok(FinalizeOutcome::Retained(format!(
                "the RDS instance '{id}'{place} is left as it is, as the deletion policy Retain says"
            )));
        }
        let location = self.rds.location().await?;
        location.require(&id, &record)?;
        let Some(instance) = self.rds.describe(&id).await? else {
            return self.finalize_absent(&id, deleted, policy, &record).await;
        };
        require_ours(&instance, &id, uid)?;
        self.record_seen(&id);
        let observed = observed(&instance);
        match self.delete(&id, deleted, policy, &record, &instance).await {
            Ok(mut progress) => {
                progress.status.extend(observed);
                Ok(FinalizeOutcome::Waiting(progress))
            }
            Err(error) => Err(with_status(observed, error)),
        }
    }

    /// Brings the deletion of an instance that RDS shows one step further.
    async fn delete(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        policy: DeletionPolicy,
        record: &RecordedInstance<'_>,
        instance: &DbInstance,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let phase = instance.db_instance_status().unwrap_or_default();
        if phase == "deleting" {
            return Ok(self.waiting(id, phase));
        }
        if instance.deletion_protection() == Some(true) {
            if !deletion::lifts_protection(deleted) {
                return Err(ReconcileError::Permanent {
                    reason: "DeletionProtected",
                    message: "the instance is protected; set `spec.deletionProtection` to false to let it go".to_owned(),
                });
            }
            let lift = Modification {
                deletion_protection: Some(false),
                ..Modification::default()
            };
            self.rds.modify(id, &lift).await?;
            return Ok(self.waiting(id, phase));
        }
        let wants_snapshot = policy == DeletionPolicy::Snapshot;
        if wants_snapshot && WITHOUT_SNAPSHOT.contains(&phase) {
            return Err(ReconcileError::Permanent {
                reason: "NoFinalSnapshot",
                message: format!(
                    "RDS reports the instance '{id}' as '{phase}' and takes no final snapshot of it; set `spec.deletionPolicy` to Retain and remove the instance by hand"
                ),
            });
        }
        let recorded = record.deletion_request.as_ref();
        let recorded_snapshot = recorded.and_then(|request| request.final_snapshot_id.clone());
        let snapshot = wants_snapshot.then(|| {
            recorded_snapshot
                .clone()
                .unwrap_or_else(|| format!("{id}-final"))
        });
        if recorded.is_none() || recorded_snapshot != snapshot {
            return Ok(self.requesting(id, phase, snapshot));
        }
        match self.rds.delete(id, snapshot.clone()).await {
            Ok(()) => {
                tracing::info!(instance = id, ?policy, "asked RDS to delete the instance");
                // Accepted is not gone: the next reconciliation confirms it.
                Ok(self.waiting(id, "deleting"))
            }
            // Left by a deletion that failed after it; another one is taken, never none.
            Err(error) if error.is("DBSnapshotAlreadyExists") => {
                let name = format!("{id}-final-{}", Timestamp::now().strftime("%Y%m%d%H%M%S"));
                Ok(self.requesting(id, phase, Some(name)))
            }
            // Deleted by somebody else since it was described, or by a call whose answer was lost: the next
            // reconciliation finds out.
            Err(error) if error.is("DBInstanceNotFound") => Ok(self.waiting(id, phase)),
            // Busy; RDS takes the call once it is not.
            Err(error) if error.is("InvalidDBInstanceState") => Ok(self.waiting(id, phase)),
            // Nothing is under way that could delete the instance.
            Err(error) if error.is_rejected() => {
                let status = fields([("deletionRequest", Value::Null)]);
                Err(with_status(status, error.into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Records the request to delete an instance; it is sent by the reconciliation that finds it recorded.
    fn requesting(&self, id: &str, phase: &str, snapshot: Option<String>) -> ReconcileOutput {
        let mut progress = self.waiting(id, phase);
        let request = DeletionRequest {
            final_snapshot_id: snapshot,
        };
        let request = fields([("deletionRequest", json!(request))]);
        progress.status.extend(request);
        progress.requeue_after = Duration::ZERO;
        progress
    }

    /// Decides on an instance that RDS does not know.
    async fn finalize_absent(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        policy: DeletionPolicy,
        record: &RecordedInstance<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        // Recorded before RDS was first asked for anything.
        if record.instance_id.is_none() {
            return Ok(FinalizeOutcome::Done);
        }
        if !self.is_within_grace_period(id) && record.deletion_request.is_none() {
            return Ok(FinalizeOutcome::Waiting(self.unseen(id)));
        }
        let Some(shown) = record.display_name() else {
            self.forget(id);
            return Ok(FinalizeOutcome::Done);
        };
        self.require_not_renamed(id, record, uid_of(deleted))
            .await?;
        let began = deletion_began(deleted);
        if self.is_deleted_by_us(id, policy, record, began).await? {
            self.forget(id);
            return Ok(FinalizeOutcome::Done);
        }
        Err(ReconcileError::Permanent {
            reason: "InstanceMissing",
            message: format!(
                "the RDS instance '{id}' ({shown}) does not exist any more, and nothing shows that this controller has deleted it; there is no final snapshot '{id}-final'. Restore what is needed, then set `spec.deletionPolicy` to Retain to let the object go"
            ),
        })
    }

    /// Returns whether an instance is gone as the deletion policy says. A final snapshot proves it; without one, the
    /// recorded request does, which RDS has not refused.
    async fn is_deleted_by_us(
        &self,
        id: &str,
        policy: DeletionPolicy,
        record: &RecordedInstance<'_>,
        began: i64,
    ) -> Result<bool, ReconcileError> {
        if policy == DeletionPolicy::Delete && record.deletion_request.is_some() {
            return Ok(true);
        }
        let snapshots = self.rds.snapshots(id).await?;
        let mut snapshots = snapshots.iter();
        Ok(snapshots.any(|snapshot| is_final(snapshot, id, began)))
    }
}

fn uid_of<'a>(deleted: &FinalizeRequest<'a>) -> Option<&'a str> {
    let uid = deleted.object.pointer("/metadata/uid");
    uid.and_then(Value::as_str)
}

/// The most by which the clocks of the API server and of RDS are expected to differ, in seconds.
const CLOCK_SKEW: i64 = 60;

/// Returns whether a snapshot is a final one of a deletion that began at a time, in seconds since 1970. One that was taken
/// before is of an earlier instance with the identifier, or was made by another client.
fn is_final(snapshot: &DbSnapshot, id: &str, began: i64) -> bool {
    let name = snapshot.db_snapshot_identifier().unwrap_or_default();
    let is_ours = name.starts_with(&format!("{id}-final"));
    let has_failed = snapshot.status() == Some("failed");
    // While it is being taken, it has no time.
    let time = snapshot.snapshot_create_time();
    let is_of_before = time.is_some_and(|time| time.secs() < began - CLOCK_SKEW);
    is_ours && !has_failed && !is_of_before
}

/// Returns when the deletion of an object began, in seconds since 1970.
fn deletion_began(deleted: &FinalizeRequest<'_>) -> i64 {
    let time = deleted.object.pointer("/metadata/deletionTimestamp");
    let time = time.and_then(Value::as_str);
    let time = time.and_then(|time| time.parse::<Timestamp>().ok());
    time.map_or(0, Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::primitives::DateTime;

    use super::*;

    #[test]
    fn a_final_snapshot_is_taken_after_the_deletion_has_begun() {
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
