//! Finalization: the deletion of an instance with its object.
//!
//! locate → describe → record the request → delete → confirm that it is gone
//!
//! The process may stop after every step. The request is recorded before it is sent, and apart from that, whether RDS has
//! accepted it: what is recorded has not happened yet. What proves that an instance is gone is in
//! [`absence`](crate::deletion::absence).

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{
    ApplyChanges, CloudDatabaseStatus, DeletionPolicy, DeletionRequest,
};
use lockstep_controller::{
    FinalizeOutcome, FinalizeRequest, OperatorEvent, ReconcileError, ReconcileOutput,
};
use serde_json::Value;

use crate::aws::call_error::{CallError, ROLE_NOT_ASSUMED};
use crate::clock;
use crate::deletion::absence::{Deletion, Requested};
use crate::deletion::deleted::Deleted;
use crate::deletion::deleted_instance::Found;
use crate::deletion::deletion_policy;
use crate::deletion::final_snapshot;
use crate::deletion::refused::DeletionCall;
use crate::deletion::release::{self, deletion_age};
use crate::instance::identity::Identity;
use crate::instance::instance_reconciler::{InstanceReconciler, require_ours};
use crate::instance::instance_status;
use crate::instance::modification::Modification;
use crate::instance::observed_status;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags;
use crate::settings::DeletionProtection;

impl InstanceReconciler {
    /// Performs the next step of the finalization of an object, and records it in the status, also before an error.
    pub(crate) async fn finalize(
        &self,
        request: &FinalizeRequest<'_>,
        identity: &Identity,
        record: &Record,
        status: &mut CloudDatabaseStatus,
    ) -> Result<FinalizeOutcome, StepError> {
        let id = identity.id.as_str();
        if deletion_policy::is_observed(request) {
            self.forget(id);
            return Ok(FinalizeOutcome::Retained(format!(
                "the RDS instance '{id}' is retained: it was only observed"
            )));
        }
        let deleted = Deleted::new(request, identity, record);
        if deleted.policy == DeletionPolicy::Retain {
            return Ok(self.release(&deleted).await?);
        }
        let found = self.find(id, record).await;
        if found.is_ok() {
            self.accepted_call(&deleted, DeletionCall::Describe);
        }
        let instance = match found {
            Ok(Some(instance)) => instance,
            Ok(None) => match Box::pin(self.look_again(&deleted, status)).await? {
                Found::Instance(instance) => *instance,
                Found::Nothing(outcome) => return Ok(*outcome),
            },
            Err(error) => return self.without_description(&deleted, error),
        };
        if identity.is_adopted && !tags::is_owned_by(&instance, deleted.uid()) {
            // One list of tags can be older than the adoption.
            if record.requested() != Requested::Never && !self.is_unowned_for_long(id) {
                let phase = instance.db_instance_status().unwrap_or_default();
                return Ok(FinalizeOutcome::Waiting(self.waiting(status, phase)));
            }
            self.forget(id);
            return Ok(FinalizeOutcome::Retained(format!(
                "the RDS instance '{id}' is retained: the object has not adopted it"
            )));
        }
        require_ours(&instance, id, deleted.uid())?;
        self.record_seen(id);
        self.record_owned(id);
        let progress = self.delete(&deleted, &instance, status).await;
        observed_status::record(status, &instance);
        progress.map(FinalizeOutcome::Waiting)
    }

    /// Returns what follows if RDS does not describe the instance.
    fn without_description(
        &self,
        deleted: &Deleted<'_>,
        error: StepError,
    ) -> Result<FinalizeOutcome, StepError> {
        let error = error.during(DeletionCall::Describe);
        if error.reason() == ROLE_NOT_ASSUMED {
            let done = release::without_access(deleted, error.error());
            return done.ok_or_else(|| error.map(|error| self.requeue(error)));
        }
        if deleted.record.requested() == Requested::Never {
            return self.leave_unrequested(deleted, error);
        }
        Err(error)
    }

    /// Ends the finalization of an object for which no instance was requested, as its complete status proves, although RDS
    /// does not answer. It is waited for, as an answer costs nothing.
    fn leave_unrequested(
        &self,
        deleted: &Deleted<'_>,
        error: StepError,
    ) -> Result<FinalizeOutcome, StepError> {
        let id = deleted.id();
        if deletion_age(deleted.request) < self.shared.config.not_found_grace_period {
            return Err(error);
        }
        self.forget(id);
        Ok(FinalizeOutcome::Retained(format!(
            "no RDS instance was requested for the object, as its status says, and RDS could not be asked for '{id}': {}",
            error.error()
        )))
    }

    async fn find(&self, id: &str, record: &Record) -> Result<Option<DbInstance>, StepError> {
        self.rds.location().await?.require(id, record)?;
        Ok(self.rds.describe(id).await?)
    }

    /// Performs the next step of the deletion of an instance that RDS lists.
    async fn delete(
        &self,
        deleted: &Deleted<'_>,
        instance: &DbInstance,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        let Deleted { record, .. } = *deleted;
        let id = deleted.id();
        let phase = instance.db_instance_status().unwrap_or_default();
        if phase == "deleting" {
            return Ok(self.seen_deleting(id, status));
        }
        if record.deletion() == Deletion::Deleting {
            return Ok(self.reverted(phase, status));
        }
        if instance.deletion_protection() == Some(true) {
            return self.lift_protection(deleted, phase, status).await;
        }
        let wants_snapshot = deleted.policy == DeletionPolicy::Snapshot;
        if wants_snapshot && let Some(problem) = without_final_snapshot(id, instance) {
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
            return Ok(self.requesting(phase, snapshot, status));
        }
        let retain_backups = deleted
            .request
            .object
            .pointer("/spec/retainAutomatedBackups");
        let retain_backups = retain_backups.and_then(Value::as_bool);
        match self.rds.delete(id, snapshot.clone(), retain_backups).await {
            Ok(()) => {
                self.accepted_call(deleted, DeletionCall::Delete);
                Ok(self.accepted(deleted, snapshot, status))
            }
            Err(error) => self
                .not_deleted(deleted, phase, error, status)
                .map_err(|error| error.during(DeletionCall::Delete)),
        }
    }

    /// Switches off the deletion protection of an instance, if the object says so.
    async fn lift_protection(
        &self,
        deleted: &Deleted<'_>,
        phase: &str,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        if !deletion_policy::lifts_protection(deleted.request) {
            return Err(StepError::from(ReconcileError::Permanent {
                reason: "DeletionProtected",
                message: "the instance has deletion protection; set `spec.deletionProtection` to false to delete it".to_owned(),
            }));
        }
        let lift = Modification::with::<DeletionProtection>(false);
        let when = ApplyChanges::MaintenanceWindow;
        let lifted = self.rds.modify(deleted.id(), &lift, when).await;
        lifted.map_err(|error| StepError::from(error).during(DeletionCall::LiftProtection))?;
        self.accepted_call(deleted, DeletionCall::LiftProtection);
        Ok(self.waiting(status, phase))
    }

    /// Records that RDS has accepted the request. The next reconciliation confirms the deletion.
    fn accepted(
        &self,
        deleted: &Deleted<'_>,
        snapshot: Option<String>,
        status: &mut CloudDatabaseStatus,
    ) -> ReconcileOutput {
        let id = deleted.id();
        let policy = deleted.policy;
        tracing::info!(
            instance = id,
            ?policy,
            "requested the deletion of the instance from RDS"
        );
        let note = match &snapshot {
            Some(snapshot) => format!(
                "RDS deletes the instance '{id}' and takes the final snapshot '{snapshot}', as the deletion policy says"
            ),
            None => format!(
                "RDS deletes the instance '{id}' without a final snapshot, as the deletion policy says"
            ),
        };
        status.deletion_request = Some(DeletionRequest {
            final_snapshot_id: snapshot,
            accepted_at: Some(clock::text()),
            seen_deleting: false,
        });
        ReconcileOutput {
            events: vec![OperatorEvent {
                is_warning: false,
                reason: "Deleting",
                note,
            }],
            ..self.deleting(id, status)
        }
    }

    /// Returns what follows from an error of the deletion.
    fn not_deleted(
        &self,
        deleted: &Deleted<'_>,
        phase: &str,
        error: CallError,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        let id = deleted.id();
        match error {
            // The snapshot is from a deletion that failed after it was taken. Take another one, never none.
            error if error.is("DBSnapshotAlreadyExists") => {
                let name = final_snapshot::name_with_time(id);
                Ok(self.requesting(phase, Some(name), status))
            }
            // Another client, or a call with a lost response, has deleted it since it was described. The next
            // reconciliation distinguishes the two.
            error if error.is("DBInstanceNotFound") => Ok(self.waiting(status, phase)),
            // A status that does not pass, in which RDS does not accept the call.
            error if error.is_busy() && instance_status::meaning(phase).problem.is_some() => {
                // The request stays recorded: an earlier call may have been executed.
                Err(refused_in_status(deleted, phase, &error).into())
            }
            // The instance is busy; RDS accepts the call later.
            error if error.is_busy() => {
                status.phase = Some(phase.to_owned());
                let message = format!(
                    "RDS does not delete the instance '{id}' while it is '{phase}': {}",
                    error.text()
                );
                Ok(self.in_progress(status, message))
            }
            // RDS has rejected the request, so it will not delete the instance, unless it has accepted one before.
            error if error.is_rejected() && deleted.record.deletion() <= Deletion::Recorded => {
                status.deletion_request = None;
                status.message = Some(format!("RDS rejects the deletion: {}", error.text()));
                Err(error.into())
            }
            error => Err(error.into()),
        }
    }

    /// Returns the progress of an instance that RDS reports as `deleting`, and records that it has, if it has accepted the
    /// request of the controller before.
    fn seen_deleting(&self, id: &str, status: &mut CloudDatabaseStatus) -> ReconcileOutput {
        if let Some(request) = &mut status.deletion_request {
            request.seen_deleting |= request.accepted_at.is_some();
        }
        self.deleting(id, status)
    }

    /// Records that RDS has taken a deletion back, so that a later absence is not explained by it. The next reconciliation
    /// requests it again.
    fn reverted(&self, phase: &str, status: &mut CloudDatabaseStatus) -> ReconcileOutput {
        if let Some(request) = &mut status.deletion_request {
            request.seen_deleting = false;
        }
        ReconcileOutput {
            requeue_after: Duration::ZERO,
            ..self.waiting(status, phase)
        }
    }

    /// Returns the progress of an instance that RDS is deleting.
    fn deleting(&self, id: &str, status: &mut CloudDatabaseStatus) -> ReconcileOutput {
        let request = status.deletion_request.as_ref();
        let snapshot = request.and_then(|request| request.final_snapshot_id.as_deref());
        let snapshot = snapshot.map_or(String::new(), |snapshot| {
            format!("; its final snapshot is '{snapshot}'")
        });
        status.phase = Some("deleting".to_owned());
        self.in_progress(
            status,
            format!("RDS is deleting the instance '{id}'{snapshot}"),
        )
    }

    /// Records the request to delete an instance. The next reconciliation sends it.
    fn requesting(
        &self,
        phase: &str,
        snapshot: Option<String>,
        status: &mut CloudDatabaseStatus,
    ) -> ReconcileOutput {
        status.deletion_request = Some(DeletionRequest {
            final_snapshot_id: snapshot,
            ..DeletionRequest::default()
        });
        ReconcileOutput {
            requeue_after: Duration::ZERO,
            ..self.waiting(status, phase)
        }
    }
}

/// Returns the reason why RDS never takes a final snapshot of an instance in its status. One that is being created is waited
/// for.
fn without_final_snapshot(id: &str, instance: &DbInstance) -> Option<String> {
    if let Some(source) = instance.read_replica_source_db_instance_identifier() {
        return Some(format!(
            "the instance '{id}' is a replica of '{source}', of which RDS takes no final snapshot; set `spec.deletionPolicy` to Delete or Retain"
        ));
    }
    let phase = instance.db_instance_status().unwrap_or_default();
    let meaning = instance_status::meaning(phase);
    (!meaning.has_final_snapshot && meaning.problem.is_some()).then(|| {
        format!(
            "RDS reports the instance '{id}' as '{phase}' and cannot take a final snapshot of it; set `spec.deletionPolicy` to Retain and delete the instance manually"
        )
    })
}

/// Returns the error of a deletion that RDS does not accept in a status that does not pass.
fn refused_in_status(deleted: &Deleted<'_>, phase: &str, error: &CallError) -> ReconcileError {
    let id = deleted.id();
    let (reason, advice) = if deleted.policy == DeletionPolicy::Snapshot {
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
