//! The operator: keeps an instance as its object says. [Creation](crate::creation) and
//! [finalization](crate::finalization) have files of their own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_rds::types::DbInstance;
use cloud_database_rules::{CloudDatabase, FINALIZER};
use controller::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError, SyncRequest};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};

use crate::drift::{self, Modification};
use crate::instances::Instances;
use crate::record::Record;
use crate::tags::{self, OWNER_TAG};

/// How often RDS is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// While something is under way. An instance takes minutes to come and to go.
    pub poll: Duration,
    /// While all is as it should be, to see what others have changed.
    pub resync: Duration,
    /// How long an instance that may have been asked for, and has not been seen, must stay unseen
    /// before it counts as gone: RDS shows a new instance a little after it has agreed to make it.
    pub settle: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(30),
            resync: Duration::from_mins(10),
            settle: Duration::from_mins(2),
        }
    }
}

/// The operator for CloudDatabase.
///
/// # Guarantees
///
/// One instance an object, whatever is lost or repeated: its identifier is made of the object's UID,
/// and it carries the UID as a tag. An instance without that tag is never touched. One that belongs to another region or
/// account is not looked for here, and one that RDS has shown and does not know any more is not replaced unless the
/// object's author says so.
pub struct CloudDatabaseReconciler {
    pub(crate) client: Client,
    pub(crate) instances: Instances,
    pub(crate) timing: Timing,
    /// What was last asked of RDS for each instance. A change that RDS agrees to and does not make is
    /// not asked for without end.
    asked: Mutex<HashMap<String, (Modification, Instant)>>,
    /// Instances that RDS has never shown, of objects that are being deleted: the time of the first look.
    unseen_since: Mutex<HashMap<String, Instant>>,
}

/// How long a change that RDS has agreed to may take to show before it is asked for again.
const ASK_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// States in which clients are served:
/// <https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/accessing-monitoring.html>.
const SERVING: &[&str] = &[
    "available",
    "backing-up",
    "configuring-enhanced-monitoring",
    "modifying",
    "storage-config-upgrade",
    "storage-optimization",
];

/// States in which RDS takes changes.
const TAKING_CHANGES: &[&str] = &["available", "storage-optimization"];

/// States that only the user can end.
const BROKEN: &[&str] = &[
    "failed",
    "incompatible-network",
    "incompatible-parameters",
    "incompatible-restore",
];

impl CloudDatabaseReconciler {
    /// An operator that reads Secrets with `client` and keeps `instances`.
    pub fn new(client: Client, instances: Instances, timing: Timing) -> Self {
        Self {
            client,
            instances,
            timing,
            asked: Mutex::default(),
            unseen_since: Mutex::default(),
        }
    }

    async fn serve(
        &self,
        id: &str,
        object: &CloudDatabase,
        instance: &DbInstance,
        enforced: &[&str],
    ) -> Result<Progress, ReconcileError> {
        let phase = instance.db_instance_status().unwrap_or_default();
        let mut remarks = drift::beyond_mending(&object.spec, instance, enforced);
        let mut soon = phase != "available";
        if soon {
            remarks.push(format!("RDS reports it as '{phase}'"));
        }
        if TAKING_CHANGES.contains(&phase) {
            self.add_tags(object, instance).await?;
            let change = drift::between(&object.spec, instance, enforced);
            if change.is_empty() {
                self.forget(id);
            } else {
                remarks.push(self.change(id, change).await?);
                soon = true;
            }
        }
        let mut message = "the database can be used".to_owned();
        for remark in remarks {
            message.push_str("; ");
            message.push_str(&remark);
        }
        let mut progress = self.available(id, instance, message);
        if soon {
            progress.requeue_after = self.timing.poll;
        }
        Ok(progress)
    }

    async fn add_tags(
        &self,
        object: &CloudDatabase,
        instance: &DbInstance,
    ) -> Result<(), ReconcileError> {
        let kept = tags::kept(object, self.instances.cluster_name());
        let missing = drift::missing_tags(kept, instance);
        match instance.db_instance_arn() {
            Some(arn) if !missing.is_empty() => Ok(self.instances.tag(arn, &missing).await?),
            _ => Ok(()),
        }
    }

    /// Asks RDS for a change and says what came of it. A change that RDS refuses does not make a
    /// database unusable.
    async fn change(&self, id: &str, change: Modification) -> Result<String, ReconcileError> {
        let fields = change.fields().join(", ");
        if !self.may_ask(id, &change) {
            return Ok(format!(
                "RDS has been asked to change {fields} and has not yet done so"
            ));
        }
        tracing::info!(instance = id, fields, "asking RDS for a change");
        let asked = self.instances.modify(id, &change).await;
        match asked {
            Ok(_) => {
                self.remember(id, change);
                Ok(format!("RDS is changing {fields}"))
            }
            // Busy: it takes the change once it is not.
            Err(error) if error.is("InvalidDBInstanceState") => {
                Ok(format!("RDS cannot change {fields} just now"))
            }
            Err(error) if error.is_permanent() => {
                self.remember(id, change);
                Ok(format!("RDS refuses to change {fields}: {}", error.message))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether an instance that RDS has never shown has been looked for long enough: a creation whose answer was
    /// lost may still be carried out.
    pub(crate) fn stays_unseen(&self, id: &str) -> bool {
        let mut unseen = self
            .unseen_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = unseen.entry(id.to_owned()).or_insert_with(Instant::now);
        since.elapsed() >= self.timing.settle
    }

    fn available(&self, id: &str, instance: &DbInstance, message: String) -> Progress {
        let endpoint = instance
            .endpoint()
            .and_then(|endpoint| Some((endpoint.address()?, endpoint.port()?)));
        let Some((host, port)) = endpoint else {
            // Available and without an address: it comes a moment later.
            return self.waiting(id, instance.db_instance_status().unwrap_or_default());
        };
        let mut status = status(
            id,
            instance.db_instance_status().unwrap_or_default(),
            &message,
        );
        status.insert("endpoint".to_owned(), json!({"host": host, "port": port}));
        Progress {
            status,
            readiness: Some(Readiness {
                ready: true,
                reason: "Available",
                message,
            }),
            requeue_after: self.timing.resync,
            children: Vec::new(),
        }
    }

    pub(crate) fn waiting(&self, id: &str, phase: &str) -> Progress {
        let message = format!("RDS reports the instance as '{phase}'");
        Progress {
            status: status(id, phase, &message),
            readiness: Some(Readiness {
                ready: false,
                reason: "InProgress",
                message,
            }),
            requeue_after: self.timing.poll,
            children: Vec::new(),
        }
    }

    fn may_ask(&self, id: &str, change: &Modification) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked
            .get(id)
            .is_none_or(|(last, at)| last != change || at.elapsed() >= ASK_AGAIN_AFTER)
    }

    fn remember(&self, id: &str, change: Modification) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(id.to_owned(), (change, Instant::now()));
    }

    pub(crate) fn forget(&self, id: &str) {
        self.unseen_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }
}

#[async_trait]
impl Reconcile for CloudDatabaseReconciler {
    type Kind = CloudDatabase;

    fn finalizer(&self) -> Option<&'static str> {
        Some(FINALIZER)
    }

    async fn identity(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        let id = identifier(request.parent().uid().as_deref())?;
        let location = self.instances.location().await?;
        location.require(&id, &Record::of(request.raw_parent()))?;
        Ok(fields([
            ("instanceId", json!(id)),
            ("region", json!(location.region)),
            ("accountId", json!(location.account_id)),
        ]))
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<Progress, ReconcileError> {
        let object = request.parent();
        let uid = object.uid();
        let id = identifier(uid.as_deref())?;
        let record = Record::of(request.raw_parent());
        let Some(instance) = self.instances.describe(&id).await? else {
            return self.create(&id, object, &record).await;
        };
        require_ours(&instance, &id, uid.as_deref())?;
        let enforced = drift::enforced(&object.spec, &instance, &record.enforced_fields);
        let mut observed = observed(&instance);
        observed.insert("enforcedFields".to_owned(), json!(enforced));
        let phase = instance.db_instance_status().unwrap_or_default();
        let done = if SERVING.contains(&phase) {
            self.serve(&id, object, &instance, &enforced).await
        } else if BROKEN.contains(&phase) {
            Err(ReconcileError::Permanent {
                reason: "InstanceBroken",
                message: format!(
                    "RDS reports the instance '{id}' as '{phase}'; see its events in RDS"
                ),
            })
        } else {
            // Any other state passes, also one that is not known here.
            Ok(self.waiting(&id, phase))
        };
        match done {
            Ok(mut progress) => {
                progress.status.extend(observed);
                Ok(progress)
            }
            Err(error) => Err(ReconcileError::Told {
                status: observed,
                error: Box::new(error),
            }),
        }
    }

    async fn finalize(&self, deleted: &Deleted<'_>) -> Result<Finalized, ReconcileError> {
        self.end(deleted).await
    }
}

/// The identifier of an object's instance: at most 63 letters, digits and hyphens, first a letter.
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
        reason: "InstanceNotOurs",
        message: format!(
            "the RDS instance '{id}' does not carry the tag '{OWNER_TAG}' of this object; restore the tag, or remove the instance"
        ),
    })
}

/// Returns the status fields that record what RDS shows of an instance.
pub(crate) fn observed(instance: &DbInstance) -> Map<String, Value> {
    let shown = fields([
        ("arn", json!(instance.db_instance_arn())),
        ("resourceId", json!(instance.dbi_resource_id())),
        ("publiclyAccessible", json!(instance.publicly_accessible())),
        ("storageEncrypted", json!(instance.storage_encrypted())),
    ]);
    // A null would remove what was recorded.
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
