//! Finalization: the deletion of an instance with its object.
//!
//! locate → describe → record the request → delete → confirm that it is gone
//!
//! The process may stop after every step. The request is recorded before it is sent, and apart from that, whether RDS has
//! accepted it: what is recorded has not happened yet. What proves that an instance is gone is in
//! [`absence`](crate::absence).

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::{ApplyChanges, DeletionPolicy, DeletionRequest};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OperatorEvent, ReconcileError, ReconcileOutput,
};
use serde_json::{Value, json};

use crate::absence::{Deletion, Requested};
use crate::call_error::{CallError, ROLE_NOT_ASSUMED};
use crate::deleted_instance::Found;
use crate::deletion_policy;
use crate::final_snapshot;
use crate::identity::Identity;
use crate::instance_reconciler::{InstanceReconciler, fields, observed, require_ours};
use crate::instance_status::{self, Meaning};
use crate::modification::Modification;
use crate::recorded_instance::RecordedInstance;
use crate::release::{self, deletion_age};
use crate::settings::DeletionProtection;
use crate::step_error::{StepError, with_status};
use crate::tags;

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
            Err(error) if record.requested() == Requested::Never => {
                return self.leave_unrequested(&id, deleted, error);
            }
            Err(error) => return Err(error.into()),
        };
        let instance = match instance {
            Some(instance) => instance,
            None => match Box::pin(self.look_again(&id, deleted, policy, &record)).await? {
                Found::Instance(instance) => *instance,
                Found::Nothing(outcome) => return Ok(*outcome),
            },
        };
        if identity.is_adopted && !tags::is_owned_by(&instance, uid) {
            // One list of tags can be older than the adoption.
            if record.requested() != Requested::Never && !self.is_unowned_for_long(&id) {
                let phase = instance.db_instance_status().unwrap_or_default();
                return Ok(FinalizeOutcome::Waiting(self.waiting(&id, phase)));
            }
            self.forget(&id);
            return Ok(FinalizeOutcome::Retained(format!(
                "the RDS instance '{id}' is retained: the object has not adopted it"
            )));
        }
        require_ours(&instance, &id, uid)?;
        self.record_seen(&id);
        self.record_owned(&id);
        let observed = observed(&instance);
        match self.delete(&id, deleted, policy, &record, &instance).await {
            Ok(mut progress) => {
                progress.status.extend(observed);
                Ok(FinalizeOutcome::Waiting(progress))
            }
            Err(error) => Err(with_status(observed, error)),
        }
    }

    /// Ends the finalization of an object for which no instance was requested, as its complete status proves, although RDS
    /// does not answer. It is waited for, as an answer costs nothing.
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
            "no RDS instance was requested for the object, as its status says, and RDS could not be asked for '{id}': {error}"
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
        if let Some(progress) = self.seen(id, phase, record) {
            return Ok(progress);
        }
        if instance.deletion_protection() == Some(true) {
            if !deletion_policy::lifts_protection(deleted) {
                return Err(StepError::from(ReconcileError::Permanent {
                    reason: "DeletionProtected",
                    message: "the instance has deletion protection; set `spec.deletionProtection` to false to delete it".to_owned(),
                }));
            }
            let lift = Modification::with::<DeletionProtection>(false);
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
                let accepted = DeletionRequest {
                    final_snapshot_id: snapshot.clone(),
                    accepted_at: Some(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
                    seen_deleting: false,
                };
                progress
                    .status
                    .insert("deletionRequest".to_owned(), json!(accepted));
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
            // RDS has rejected the request, so it will not delete the instance, unless it has accepted one before.
            Err(error) if error.is_rejected() && record.deletion() <= Deletion::Recorded => {
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

    /// Returns the progress of an instance that RDS is deleting, or whose deletion it has taken back.
    fn seen(
        &self,
        id: &str,
        phase: &str,
        record: &RecordedInstance<'_>,
    ) -> Option<ReconcileOutput> {
        if phase == "deleting" {
            return Some(self.seen_deleting(id, record));
        }
        let is_reverted = record.deletion() == Deletion::Deleting;
        is_reverted.then(|| self.reverted(id, phase, record))
    }

    /// Returns the progress of an instance that RDS reports as `deleting`, and records that it has, if it has accepted the
    /// request of the controller before.
    fn seen_deleting(&self, id: &str, record: &RecordedInstance<'_>) -> ReconcileOutput {
        let request = record.deletion_request.as_ref();
        let snapshot = request.and_then(|request| request.final_snapshot_id.as_deref());
        let mut progress = self.deleting(id, snapshot);
        if let Some(request) = request.filter(|request| request.accepted_at.is_some()) {
            let seen = DeletionRequest {
                seen_deleting: true,
                ..request.clone()
            };
            progress
                .status
                .insert("deletionRequest".to_owned(), json!(seen));
        }
        progress
    }

    /// Records that RDS has taken a deletion back, so that a later absence is not explained by it. The next reconciliation
    /// requests it again.
    fn reverted(&self, id: &str, phase: &str, record: &RecordedInstance<'_>) -> ReconcileOutput {
        let request = record.deletion_request.clone();
        let request = request.map(|request| DeletionRequest {
            seen_deleting: false,
            ..request
        });
        let mut progress = self.waiting(id, phase);
        let request = fields([("deletionRequest", json!(request))]);
        progress.status.extend(request);
        progress.requeue_after = Duration::ZERO;
        progress
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
            ..DeletionRequest::default()
        };
        let request = fields([("deletionRequest", json!(request))]);
        progress.status.extend(request);
        progress.requeue_after = Duration::ZERO;
        progress
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

fn uid_of<'a>(deleted: &FinalizeRequest<'a>) -> Option<&'a str> {
    let uid = deleted.object.pointer("/metadata/uid");
    uid.and_then(Value::as_str)
}
