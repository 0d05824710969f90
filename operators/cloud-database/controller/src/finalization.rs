//! Finalization: the deletion of an instance with its object.
//!
//! locate → describe → record the request → delete → confirm that it is gone
//!
//! The process may stop after every step. The request is recorded before it is sent, so that an instance that this
//! controller has deleted is distinguished from one that another client has deleted.

use std::time::Duration;

use aws_sdk_rds::types::{DbInstance, DbSnapshot};
use lockstep_cloud_database_api::{ApplyChanges, DeletionPolicy, DeletionRequest};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OperatorEvent, ReconcileError, ReconcileOutput,
};
use serde_json::{Value, json};

use crate::call_error::{CallError, ROLE_NOT_ASSUMED};
use crate::deletion_policy::{self, deletion_began};
use crate::drift;
use crate::final_snapshot;
use crate::identity::Identity;
use crate::instance_reconciler::{InstanceReconciler, fields, observed, require_ours};
use crate::instance_status::{self, Meaning};
use crate::modification::Modification;
use crate::recorded_instance::RecordedInstance;
use crate::release::{self, deletion_age};
use crate::step_error::{StepError, with_status};
use crate::tags::{self, ObjectTags};

impl InstanceReconciler {
    pub(crate) async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, StepError> {
        let uid = uid_of(deleted);
        let identity = Identity::of_deleted(deleted)?;
        let id = identity.id.clone();
        let record = RecordedInstance::from_status(deleted.object, &id);
        if deletion_policy::is_observed(deleted) {
            self.forget(&id);
            return Ok(FinalizeOutcome::Retained(format!(
                "the RDS instance '{id}' is retained: it was only observed"
            )));
        }
        let policy = deletion_policy::safer_policy(deleted);
        if policy == DeletionPolicy::Retain {
            return Ok(self.release(&identity, deleted, &record, uid).await?);
        }
        let instance = match self.find(&id, &record).await {
            Ok(instance) => instance,
            Err(error) if error.reason() == ROLE_NOT_ASSUMED => {
                let done = release::without_access(deleted, error);
                return Ok(done.map_err(|error| self.requeue(error))?);
            }
            Err(error) if was_never_requested(&identity, &record) => {
                return self.leave_unrequested(&id, deleted, error);
            }
            Err(error) => return Err(error.into()),
        };
        let Some(instance) = instance else {
            return self.finalize_absent(&id, deleted, policy, &record).await;
        };
        if identity.is_adopted && !tags::is_owned_by(&instance, uid) {
            self.forget(&id);
            return Ok(FinalizeOutcome::Retained(format!(
                "the RDS instance '{id}' is retained: the object has not adopted it"
            )));
        }
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

    /// Ends the finalization of an object for which no instance was requested, although RDS does not answer. It is waited for, in
    /// case that the status was erased.
    fn leave_unrequested(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        error: ReconcileError,
    ) -> Result<FinalizeOutcome, StepError> {
        if deletion_age(deleted) < self.shared.config.not_found_grace_period {
            return Err(error.into());
        }
        self.forget(id);
        Ok(FinalizeOutcome::Retained(format!(
            "no RDS instance was requested for the object, as its status says, and RDS could not be asked: {error}. If the status was erased, the instance '{id}' may exist"
        )))
    }

    async fn find(
        &self,
        id: &str,
        record: &RecordedInstance<'_>,
    ) -> Result<Option<DbInstance>, ReconcileError> {
        self.rds.location().await?.require(id, record)?;
        Ok(self.rds.describe(id).await?)
    }

    /// Performs the next step of the deletion of an instance that RDS lists.
    async fn delete(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        policy: DeletionPolicy,
        record: &RecordedInstance<'_>,
        instance: &DbInstance,
    ) -> Result<ReconcileOutput, StepError> {
        let phase = instance.db_instance_status().unwrap_or_default();
        if phase == "deleting" {
            let request = record.deletion_request.as_ref();
            return Ok(self.deleting(id, request.and_then(|it| it.final_snapshot_id.as_deref())));
        }
        if instance.deletion_protection() == Some(true) {
            if !deletion_policy::lifts_protection(deleted) {
                return Err(StepError::from(ReconcileError::Permanent {
                    reason: "DeletionProtected",
                    message: "the instance has deletion protection; set `spec.deletionProtection` to false to delete it".to_owned(),
                }));
            }
            let lift = Modification {
                deletion_protection: Some(false),
                ..Modification::default()
            };
            self.rds
                .modify(id, &lift, ApplyChanges::MaintenanceWindow)
                .await?;
            return Ok(self.waiting(id, phase));
        }
        let meaning = instance_status::meaning(phase);
        let wants_snapshot = policy == DeletionPolicy::Snapshot;
        if wants_snapshot && let Some(problem) = without_final_snapshot(id, instance, &meaning) {
            return Err(StepError::from(ReconcileError::Permanent {
                reason: "NoFinalSnapshot",
                message: problem,
            }));
        }
        let recorded = record.deletion_request.as_ref();
        let recorded_snapshot = recorded.and_then(|request| request.final_snapshot_id.clone());
        let snapshot = wants_snapshot.then(|| {
            recorded_snapshot
                .clone()
                .unwrap_or_else(|| final_snapshot::name(id))
        });
        if recorded.is_none() || recorded_snapshot != snapshot {
            return Ok(self.requesting(id, phase, snapshot));
        }
        let retain_backups = deleted.object.pointer("/spec/retainAutomatedBackups");
        let retain_backups = retain_backups.and_then(Value::as_bool);
        match self.rds.delete(id, snapshot.clone(), retain_backups).await {
            Ok(()) => {
                tracing::info!(
                    instance = id,
                    ?policy,
                    "requested the deletion of the instance from RDS"
                );
                // RDS has only accepted the request; the next reconciliation confirms the deletion.
                let mut progress = self.deleting(id, snapshot.as_deref());
                progress.events.push(OperatorEvent {
                    is_warning: false,
                    reason: "Deleting",
                    note: match &snapshot {
                        Some(snapshot) => format!(
                            "RDS deletes the instance '{id}' and takes the final snapshot '{snapshot}', as the deletion policy says"
                        ),
                        None => format!(
                            "RDS deletes the instance '{id}' without a final snapshot, as the deletion policy says"
                        ),
                    },
                });
                Ok(progress)
            }
            // The snapshot is from a deletion that failed after it was taken. Take another one, never none.
            Err(error) if error.is("DBSnapshotAlreadyExists") => {
                let name = final_snapshot::name_with_time(id);
                Ok(self.requesting(id, phase, Some(name)))
            }
            // Another client, or a call with a lost response, has deleted it since it was described. The next
            // reconciliation distinguishes the two.
            Err(error) if error.is("DBInstanceNotFound") => Ok(self.waiting(id, phase)),
            // A status that does not pass, in which RDS does not accept the call.
            Err(error) if error.is_busy() && meaning.problem.is_some() => {
                // The request stays recorded: an earlier call may have been executed.
                Err(refused_in_status(id, phase, wants_snapshot, &error).into())
            }
            // The instance is busy; RDS accepts the call later.
            Err(error) if error.is_busy() => {
                let message = format!(
                    "RDS does not delete the instance '{id}' while it is '{phase}': {}",
                    error.text()
                );
                let status = fields([("phase", json!(phase)), ("message", json!(message))]);
                Ok(self.in_progress(status, message))
            }
            // RDS has rejected the request, so it will not delete the instance.
            Err(error) if error.is_rejected() => {
                let message = format!("RDS rejects the deletion: {}", error.text());
                let status = fields([
                    ("deletionRequest", Value::Null),
                    ("message", json!(message)),
                ]);
                Err(with_status(status, error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the progress of an instance that RDS is deleting.
    fn deleting(&self, id: &str, snapshot: Option<&str>) -> ReconcileOutput {
        let snapshot = snapshot.map_or(String::new(), |snapshot| {
            format!("; its final snapshot is '{snapshot}'")
        });
        let message = format!("RDS is deleting the instance '{id}'{snapshot}");
        let status = fields([("phase", json!("deleting")), ("message", json!(message))]);
        self.in_progress(status, message)
    }

    /// Records the request to delete an instance. The next reconciliation sends it.
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

    /// Decides whether the finalization of an instance that RDS does not find is complete.
    async fn finalize_absent(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        policy: DeletionPolicy,
        record: &RecordedInstance<'_>,
    ) -> Result<FinalizeOutcome, StepError> {
        // The identifier is recorded before the first call to RDS, so without it no instance was created.
        // Region and account are recorded before the instance is created, so without them none was created either.
        let was_requested = record.region.is_some() || record.listed_id().is_some();
        if record.instance_id.is_none() || !was_requested {
            self.forget(id);
            return Ok(FinalizeOutcome::Done);
        }
        if !self.is_past_grace_period(id) && record.deletion_request.is_none() {
            return Ok(FinalizeOutcome::Waiting(self.unseen(id)));
        }
        let Some(shown) = record.listed_id() else {
            self.forget(id);
            return Ok(FinalizeOutcome::Done);
        };
        self.require_not_renamed(id, record, &ObjectTags::of_deleted(deleted.object))
            .await?;
        let deletion_time = deletion_began(deleted);
        if self
            .is_deleted_by_us(id, deleted, policy, record, deletion_time)
            .await?
        {
            self.forget(id);
            return Ok(FinalizeOutcome::Done);
        }
        Err(StepError::from(ReconcileError::Permanent {
            reason: "InstanceMissing",
            message: format!(
                "the RDS instance '{id}' ({shown}) no longer exists, and there is no proof that this controller deleted it: the final snapshot '{}' does not exist. Restore the data if needed, then set `spec.deletionPolicy` to Retain so that the object can be deleted",
                final_snapshot::name(id)
            ),
        }))
    }

    /// Returns true if the instance was deleted according to the deletion policy. A final snapshot proves it. With the
    /// policy `Delete`, the recorded request proves it, because it would have been removed if RDS had rejected it.
    async fn is_deleted_by_us(
        &self,
        id: &str,
        deleted: &FinalizeRequest<'_>,
        policy: DeletionPolicy,
        record: &RecordedInstance<'_>,
        deletion_time: i64,
    ) -> Result<bool, ReconcileError> {
        if policy == DeletionPolicy::Delete && record.deletion_request.is_some() {
            return Ok(true);
        }
        let snapshots = self.rds.snapshots(id).await?;
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

/// Returns the reason why RDS never takes a final snapshot of an instance in its status. One that is being created is waited
/// for.
fn without_final_snapshot(id: &str, instance: &DbInstance, meaning: &Meaning) -> Option<String> {
    if let Some(source) = instance.read_replica_source_db_instance_identifier() {
        return Some(format!(
            "the instance '{id}' is a replica of '{source}', of which RDS takes no final snapshot; set `spec.deletionPolicy` to Delete or Retain"
        ));
    }
    let phase = instance.db_instance_status().unwrap_or_default();
    (!meaning.has_final_snapshot && meaning.problem.is_some()).then(|| {
        format!(
            "RDS reports the instance '{id}' as '{phase}' and cannot take a final snapshot of it; set `spec.deletionPolicy` to Retain and delete the instance manually"
        )
    })
}

/// Returns the error of a deletion that RDS does not accept in a status that does not pass.
fn refused_in_status(
    id: &str,
    phase: &str,
    wants_snapshot: bool,
    error: &CallError,
) -> ReconcileError {
    let (reason, advice) = if wants_snapshot {
        let advice = "; resolve what the status says, or set `spec.deletionPolicy` to Retain and delete the instance manually";
        ("NoFinalSnapshot", advice)
    } else {
        ("RejectedByRds", "")
    };
    ReconcileError::Permanent {
        reason,
        message: format!(
            "RDS does not delete the instance '{id}' while it is '{phase}': {}{advice}",
            error.text()
        ),
    }
}

/// Returns true if the status shows that no instance was ever requested: region and account are recorded before one is created.
fn was_never_requested(identity: &Identity, record: &RecordedInstance<'_>) -> bool {
    let was_requested = record.region.is_some() || record.listed_id().is_some();
    !was_requested && !identity.is_adopted
}

fn uid_of<'a>(deleted: &FinalizeRequest<'a>) -> Option<&'a str> {
    let uid = deleted.object.pointer("/metadata/uid");
    uid.and_then(Value::as_str)
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
