//! Reconciler of CloudDatabase. [Creation](crate::creation) and [finalization](crate::finalization) are separate
//! modules.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_rds::types::DbInstance;
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::{CloudDatabase, FINALIZER, REPLACES_INSTANCE};
use lockstep_controller::{
    DeletionEffect, FinalizeOutcome, FinalizeRequest, Readiness, ReconcileError, ReconcileOutput,
    Reconciler, SyncRequest,
};
use serde_json::{Map, Value, json};

use crate::deletion_policy;
use crate::drift;
use crate::modification::Modification;
use crate::rds_client::RdsClient;
use crate::recorded_instance::RecordedInstance;
use crate::replacement::replaced;
use crate::requested_modifications::RequestedModifications;
use crate::step_error::{StepError, with_status};
use crate::tags::{self, OWNER_TAG};

/// Intervals of the calls to RDS.
#[derive(Clone, Copy, Debug)]
pub struct RdsConfig {
    /// Interval while a change is in progress. RDS needs minutes to create or delete an instance.
    pub poll_interval: Duration,
    /// Interval while the instance is up to date, to detect changes by other clients.
    pub resync_period: Duration,
    /// Time for which RDS must not list an instance before it counts as missing, or as deleted if its object is being
    /// deleted. RDS lists a new instance only some time after it has accepted the creation.
    pub not_found_grace_period: Duration,
}

impl Default for RdsConfig {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(30),
            resync_period: Duration::from_mins(10),
            not_found_grace_period: Duration::from_mins(2),
        }
    }
}

/// Reconciler of CloudDatabase.
///
/// # Guarantees
///
/// Each object has at most one instance, even if calls are lost or repeated: the identifier contains the UID of
/// the object, and the instance has the UID as a tag. An instance without this tag is never modified. An instance
/// in another region or account is not searched for here. An instance that RDS has listed before and no longer
/// finds is not replaced unless a user requests it.
pub struct CloudDatabaseReconciler {
    pub(crate) client: Client,
    pub(crate) rds: RdsClient,
    pub(crate) config: RdsConfig,
    requested_modifications: RequestedModifications,
    /// Instances that RDS does not list, with the time since then.
    unseen_since: Mutex<HashMap<String, Instant>>,
}

/// States in which the instance serves clients:
/// <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/accessing-monitoring.html>.
const SERVING: &[&str] = &[
    "available",
    "backing-up",
    "configuring-enhanced-monitoring",
    "modifying",
    "storage-config-upgrade",
    "storage-optimization",
];

/// States in which RDS accepts modifications.
const TAKING_CHANGES: &[&str] = &["available", "storage-optimization"];

/// States that only a user can resolve.
const BROKEN: &[&str] = &[
    "failed",
    "incompatible-network",
    "incompatible-parameters",
    "incompatible-restore",
];

impl CloudDatabaseReconciler {
    /// Creates a reconciler that reads Secrets with `client` and manages instances with `rds`.
    pub fn new(client: Client, instances: RdsClient, config: RdsConfig) -> Self {
        Self {
            client,
            rds: instances,
            config,
            requested_modifications: RequestedModifications::default(),
            unseen_since: Mutex::default(),
        }
    }

    /// Brings the instance to its desired state.
    async fn sync(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<ReconcileOutput, StepError> {
        let object = request.parent();
        let uid = object.uid();
        let id = identifier(uid.as_deref())?;
        let record = RecordedInstance::from_status(request.raw_parent(), &id);
        let Some(instance) = self.rds.describe(&id).await? else {
            return self.create(&id, object, &record).await;
        };
        require_ours(&instance, &id, uid.as_deref()).map_err(|error| self.requeue(error))?;
        self.record_seen(&id);
        let enforced = drift::enforced(&object.spec, &instance, &record.enforced_fields);
        let mut observed = observed(&instance);
        observed.insert("enforcedFields".to_owned(), json!(enforced));
        let phase = instance.db_instance_status().unwrap_or_default();
        let done = if SERVING.contains(&phase) {
            self.sync_instance(&id, object, &instance, &enforced).await
        } else if BROKEN.contains(&phase) {
            Err(self.requeue(ReconcileError::Permanent {
                reason: "InstanceFailed",
                message: format!(
                    "RDS reports the instance '{id}' as '{phase}'; see its events in RDS"
                ),
            }))
        } else {
            // Any other state is temporary, including unknown ones.
            Ok(self.waiting(&id, phase))
        };
        match done {
            Ok(mut progress) => {
                progress.status.extend(observed);
                Ok(progress)
            }
            Err(error) => Err(with_status(observed, error)),
        }
    }

    async fn sync_instance(
        &self,
        id: &str,
        object: &CloudDatabase,
        instance: &DbInstance,
        enforced: &[&str],
    ) -> Result<ReconcileOutput, ReconcileError> {
        let phase = instance.db_instance_status().unwrap_or_default();
        let mut notes = drift::unrepairable(&object.spec, instance, enforced);
        if let Some(id) = instance.dbi_resource_id()
            && replaced(object).contains(id)
        {
            notes.push(format!(
                "the annotation {REPLACES_INSTANCE} lists this instance, so that an empty one would replace it if it were missing; remove the annotation"
            ));
        }
        let mut soon = phase != "available";
        if soon {
            notes.push(format!("RDS reports its status as '{phase}'"));
        }
        if TAKING_CHANGES.contains(&phase) {
            self.add_tags(object, instance).await?;
            let change = drift::between(&object.spec, instance, enforced);
            let parts: Vec<_> = change.parts().collect();
            self.requested_modifications.retain(id, &parts);
            soon |= !parts.is_empty();
            // Each part is requested, even if another one fails.
            let mut outcomes = Vec::new();
            for part in parts {
                outcomes.push(self.modify(id, part).await);
            }
            for outcome in outcomes {
                notes.push(outcome?);
            }
        }
        let mut message = "the database can be used".to_owned();
        for note in notes {
            message.push_str("; ");
            message.push_str(&note);
        }
        let mut progress = self.available(id, instance, message);
        if soon {
            progress.requeue_after = self.config.poll_interval;
        }
        Ok(progress)
    }

    async fn add_tags(
        &self,
        object: &CloudDatabase,
        instance: &DbInstance,
    ) -> Result<(), ReconcileError> {
        let expected = tags::managed_tags(object, self.rds.cluster_name());
        let missing = drift::missing_tags(expected, instance);
        match instance.db_instance_arn() {
            Some(arn) if !missing.is_empty() => Ok(self.rds.tag(arn, &missing).await?),
            _ => Ok(()),
        }
    }

    /// Requests a modification from RDS and returns a description of the outcome. A rejected modification is not an
    /// error, because the database can still be used.
    async fn modify(&self, id: &str, change: Modification) -> Result<String, ReconcileError> {
        if let Some(outcome) = self.requested_modifications.outcome(id, &change) {
            return Ok(outcome);
        }
        let fields = change.fields().join(", ");
        tracing::info!(instance = id, fields, "requesting a modification from RDS");
        let response = self.rds.modify(id, &change).await;
        match response {
            Ok(_) => {
                let outcome =
                    format!("RDS has accepted the change of {fields} and has not applied it yet");
                self.requested_modifications.remember(id, change, outcome);
                Ok(format!("RDS is changing {fields}"))
            }
            // The instance is busy; RDS accepts the change later.
            Err(error) if error.is("InvalidDBInstanceState") => {
                Ok(format!("RDS cannot change {fields} at the moment"))
            }
            Err(error) if error.is_permanent() => {
                let outcome = format!("RDS has rejected the change of {fields}: {}", error.message);
                self.requested_modifications
                    .remember(id, change, outcome.clone());
                Ok(outcome)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if RDS has not listed an instance for long enough to count as missing. A creation with a lost
    /// response may still be executed, and RDS lists a new instance only some time after it has accepted the
    /// creation.
    pub(crate) fn is_past_grace_period(&self, id: &str) -> bool {
        let mut unseen = self
            .unseen_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = unseen.entry(id.to_owned()).or_insert_with(Instant::now);
        since.elapsed() >= self.config.not_found_grace_period
    }

    fn available(&self, id: &str, instance: &DbInstance, message: String) -> ReconcileOutput {
        let endpoint = instance
            .endpoint()
            .and_then(|endpoint| Some((endpoint.address()?, endpoint.port()?)));
        let Some((host, port)) = endpoint else {
            // The instance is available but has no address yet; RDS sets it a moment later.
            return self.waiting(id, instance.db_instance_status().unwrap_or_default());
        };
        let mut status = status(
            id,
            instance.db_instance_status().unwrap_or_default(),
            &message,
        );
        status.insert("endpoint".to_owned(), json!({"host": host, "port": port}));
        ReconcileOutput {
            status,
            readiness: Some(Readiness {
                ready: true,
                reason: "Available",
                message,
            }),
            requeue_after: self.config.resync_period,
            ..ReconcileOutput::default()
        }
    }

    /// Returns the progress of an instance that has not reached its final phase.
    pub(crate) fn waiting(&self, id: &str, phase: &str) -> ReconcileOutput {
        let message = format!("RDS reports the instance as '{phase}'");
        self.in_progress(status(id, phase, &message), message)
    }

    /// Returns the progress of an instance that RDS does not list yet.
    pub(crate) fn unseen(&self, id: &str) -> ReconcileOutput {
        let message = format!("RDS does not list the instance '{id}'");
        let status = fields([("phase", Value::Null), ("message", json!(message))]);
        self.in_progress(status, message)
    }

    /// Returns the progress of an operation that is not complete.
    pub(crate) fn in_progress(
        &self,
        status: Map<String, Value>,
        message: String,
    ) -> ReconcileOutput {
        ReconcileOutput {
            status,
            readiness: Some(Readiness {
                ready: false,
                reason: "InProgress",
                message,
            }),
            requeue_after: self.config.poll_interval,
            ..ReconcileOutput::default()
        }
    }

    /// Wraps an error so that the object is reconciled again later: the cause may be resolved in RDS, which no watch
    /// observes.
    pub(crate) fn requeue(&self, error: ReconcileError) -> ReconcileError {
        ReconcileError::RequeueAfter {
            after: self.config.resync_period,
            error: Box::new(error),
        }
    }

    /// Records that RDS lists an instance.
    pub(crate) fn record_seen(&self, id: &str) {
        self.unseen_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }

    pub(crate) fn forget(&self, id: &str) {
        self.record_seen(id);
        self.requested_modifications.retain(id, &[]);
    }
}

#[async_trait]
impl Reconciler for CloudDatabaseReconciler {
    type Kind = CloudDatabase;

    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    async fn status_identity(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        let id = identifier(request.parent().uid().as_deref())?;
        let location = self.rds.location().await?;
        location.require(
            &id,
            &RecordedInstance::from_status(request.raw_parent(), &id),
        )?;
        let mut identity = fields([("instanceId", json!(id))]);
        let status = &request.raw_parent()["status"];
        if status["instanceId"]
            .as_str()
            .is_some_and(|recorded| recorded != id)
        {
            // The status was copied from another object.
            identity.extend(RECORDED.map(|field| (field.to_owned(), Value::Null)));
        }
        Ok(identity)
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        let done = self.sync(request).await;
        Ok(done.unwrap_or_else(StepError::into_output))
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        let done = self.finalize(deleted).await;
        Ok(done.unwrap_or_else(|error| FinalizeOutcome::Waiting(error.into_output())))
    }

    fn deletion_effect(deleted: &FinalizeRequest<'_>) -> Option<DeletionEffect> {
        Some(deletion_policy::effect(deleted))
    }
}

/// Returns the identifier of an object's instance: at most 63 letters, digits and hyphens, starting with a letter.
pub(crate) fn identifier(uid: Option<&str>) -> Result<String, ReconcileError> {
    match uid {
        Some(uid) if !uid.is_empty() => Ok(format!("cdb-{}", uid.to_lowercase())),
        _ => Err(ReconcileError::Permanent {
            reason: "NoUid",
            message: "the object has no UID".to_owned(),
        }),
    }
}

pub(crate) fn require_ours(
    instance: &DbInstance,
    id: &str,
    uid: Option<&str>,
) -> Result<(), ReconcileError> {
    if tags::is_owned_by(instance, uid) {
        return Ok(());
    }
    Err(ReconcileError::Permanent {
        reason: "InstanceNotOwned",
        message: format!(
            "the RDS instance '{id}' does not have the tag '{OWNER_TAG}' with the UID of this object; restore the tag, or delete the instance"
        ),
    })
}

/// Status fields that record an instance, besides its identifier.
const RECORDED: [&str; 10] = [
    "arn",
    "resourceId",
    "region",
    "accountId",
    "endpoint",
    "phase",
    "publiclyAccessible",
    "storageEncrypted",
    "enforcedFields",
    "deletionRequest",
];

/// Returns the status fields that record an instance as RDS describes it.
pub(crate) fn observed(instance: &DbInstance) -> Map<String, Value> {
    let arn = instance.db_instance_arn();
    let of_arn = |part: usize| arn.and_then(|arn| arn.split(':').nth(part));
    let shown = fields([
        ("arn", json!(arn)),
        ("region", json!(of_arn(3))),
        ("accountId", json!(of_arn(4))),
        ("resourceId", json!(instance.dbi_resource_id())),
        ("publiclyAccessible", json!(instance.publicly_accessible())),
        ("storageEncrypted", json!(instance.storage_encrypted())),
    ]);
    // A null would remove the recorded value.
    let shown = shown.into_iter().filter(|(_, value)| !value.is_null());
    shown.collect()
}

pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn status(id: &str, phase: &str, message: &str) -> Map<String, Value> {
    fields([
        ("instanceId", json!(id)),
        ("phase", json!(phase)),
        ("message", json!(message)),
    ])
}
