//! Finalization: the deletion of an instance with its object.
//!
//! locate → describe → record the request → delete → confirm that it is gone
//!
//! Every step may be the last of this process. The request is recorded before it is sent, so that an instance that is
//! gone afterwards is told from one that somebody else has deleted.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use cloud_database_rules::{DeletionPolicy, DeletionRequest};
use controller::{Deleted, Finalized, Progress, ReconcileError};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::deletion;
use crate::drift::Modification;
use crate::reconciler::{CloudDatabaseReconciler, identifier, observed, require_ours};
use crate::record::Record;

/// States in which RDS takes no final snapshot (`DeleteDBInstance`, `SkipFinalSnapshot`).
const WITHOUT_SNAPSHOT: &[&str] = &["failed", "incompatible-network", "incompatible-restore"];

impl CloudDatabaseReconciler {
    pub(crate) async fn end(&self, deleted: &Deleted<'_>) -> Result<Finalized, ReconcileError> {
        let uid = deleted
            .object
            .pointer("/metadata/uid")
            .and_then(Value::as_str);
        let id = identifier(uid)?;
        let record = Record::of(deleted.object);
        let policy = deletion::policy(deleted);
        if policy == DeletionPolicy::Retain {
            let place = record.arn.map_or(String::new(), |arn| format!(" ({arn})"));
            return Ok(Finalized::Kept(format!(
                "the RDS instance '{id}'{place} stays, as the deletion policy Retain says"
            )));
        }
        let location = self.instances.location().await?;
        location.require(&id, &record)?;
        let Some(instance) = self.instances.describe(&id).await? else {
            return self.absent(&id, policy, &record).await;
        };
        require_ours(&instance, &id, uid)?;
        let mut progress = self
            .delete(&id, deleted, policy, &record, &instance)
            .await?;
        progress.status.extend(observed(&instance));
        Ok(Finalized::Waiting(progress))
    }

    /// Brings the deletion of an instance that RDS shows one step further.
    async fn delete(
        &self,
        id: &str,
        deleted: &Deleted<'_>,
        policy: DeletionPolicy,
        record: &Record<'_>,
        instance: &DbInstance,
    ) -> Result<Progress, ReconcileError> {
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
            self.instances.modify(id, &lift).await?;
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
        match self.instances.delete(id, snapshot.clone()).await {
            Ok(()) => {
                tracing::info!(instance = id, ?policy, "asked RDS to delete the instance");
                // Accepted is not gone: the next reconciliation confirms it.
                let mut progress = self.waiting(id, "deleting");
                record_request(&mut progress, snapshot, true);
                Ok(progress)
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
            Err(error) => Err(error.into()),
        }
    }

    /// Records the request to delete an instance; it is sent by the reconciliation that finds it recorded.
    fn requesting(&self, id: &str, phase: &str, snapshot: Option<String>) -> Progress {
        let mut progress = self.waiting(id, phase);
        record_request(&mut progress, snapshot, false);
        progress.requeue_after = Duration::ZERO;
        progress
    }

    /// Decides on an instance that RDS does not know.
    async fn absent(
        &self,
        id: &str,
        policy: DeletionPolicy,
        record: &Record<'_>,
    ) -> Result<Finalized, ReconcileError> {
        // Recorded before RDS was first asked for anything.
        if record.instance_id.is_none() {
            return Ok(Finalized::Gone);
        }
        let is_gone = match (record.resource_id, &record.deletion_request) {
            (None, _) => {
                if !self.stays_unseen(id) {
                    return Ok(Finalized::Waiting(self.waiting(id, "unseen")));
                }
                true
            }
            (Some(_), None) => false,
            (Some(_), Some(request)) => self.was_carried_out(policy, request).await?,
        };
        if is_gone {
            self.forget(id);
            return Ok(Finalized::Gone);
        }
        Err(ReconcileError::Permanent {
            reason: "InstanceMissing",
            message: format!(
                "the RDS instance '{id}' ({}) does not exist any more, and this controller has not deleted it: there may be no final snapshot. Restore what is needed, then set `spec.deletionPolicy` to Retain to let the object go",
                record.resource_id.unwrap_or_default()
            ),
        })
    }

    /// Returns whether an instance is gone because of a recorded request. Where its answer is not known, the final
    /// snapshot proves it.
    async fn was_carried_out(
        &self,
        policy: DeletionPolicy,
        request: &DeletionRequest,
    ) -> Result<bool, ReconcileError> {
        match &request.final_snapshot_id {
            _ if request.accepted => Ok(true),
            Some(snapshot) => Ok(self.instances.has_snapshot(snapshot).await?),
            // Nothing was to be kept of it, if that still holds.
            None => Ok(policy == DeletionPolicy::Delete),
        }
    }
}

fn record_request(progress: &mut Progress, final_snapshot_id: Option<String>, accepted: bool) {
    let request = DeletionRequest {
        final_snapshot_id,
        accepted,
    };
    let request = json!(request);
    progress
        .status
        .insert("deletionRequest".to_owned(), request);
}
