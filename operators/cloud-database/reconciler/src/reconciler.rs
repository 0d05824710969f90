//! The operator's two steps: keep the instance as the object says, and end it with the object.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_rds::types::DbInstance;
use cloud_database_rules::{CloudDatabase, DeletionPolicy, FINALIZER};
use controller::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError, SyncRequest};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};

use crate::credentials;
use crate::deletion;
use crate::drift::{self, Modification};
use crate::instances::{Instances, OWNER_TAG};
use crate::standing;

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
/// and it carries the UID as a tag. An instance without that tag is never touched.
pub struct CloudDatabaseReconciler {
    client: Client,
    instances: Instances,
    timing: Timing,
    /// What was last asked of RDS for each instance. A change that RDS agrees to and does not make is
    /// not asked for without end.
    asked: Mutex<HashMap<String, (Modification, Instant)>>,
    /// What has been seen of instances whose objects are being deleted.
    leaving: Mutex<HashMap<String, Presence>>,
}

/// What this process has seen of an instance.
#[derive(Clone, Copy)]
enum Presence {
    Seen,
    MissingSince(Instant),
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

/// States in which RDS takes no final snapshot (`DeleteDBInstance`, `SkipFinalSnapshot`).
const WITHOUT_SNAPSHOT: &[&str] = &["failed", "incompatible-network", "incompatible-restore"];

impl CloudDatabaseReconciler {
    /// An operator that reads Secrets with `client` and keeps `instances`.
    pub fn new(client: Client, instances: Instances, timing: Timing) -> Self {
        Self {
            client,
            instances,
            timing,
            asked: Mutex::default(),
            leaving: Mutex::default(),
        }
    }

    async fn create(&self, id: &str, object: &CloudDatabase) -> Result<Progress, ReconcileError> {
        standing::require(&self.client, object).await?;
        let user = credentials::read(&self.client, object).await?;
        match self.instances.create(id, object, &user).await {
            Ok(instance) => {
                tracing::info!(instance = id, "asked RDS for a new instance");
                Ok(self.waiting(id, instance.db_instance_status().unwrap_or("creating")))
            }
            // An earlier call was applied and its reply lost.
            Err(error) if error.is("DBInstanceAlreadyExists") => {
                match self.instances.describe(id).await? {
                    Some(instance) => {
                        require_ours(&instance, id, object.uid().as_deref())?;
                        Ok(self.waiting(id, instance.db_instance_status().unwrap_or("creating")))
                    }
                    None => Err(ReconcileError::Transient {
                        reason: "InstanceUnseen",
                        message: format!("RDS knows the instance '{id}' and does not show it yet"),
                    }),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn serve(
        &self,
        id: &str,
        object: &CloudDatabase,
        instance: &DbInstance,
    ) -> Result<Progress, ReconcileError> {
        let phase = instance.db_instance_status().unwrap_or_default();
        let mut remarks = drift::beyond_mending(&object.spec, instance);
        let mut soon = phase != "available";
        if soon {
            remarks.push(format!("RDS reports it as '{phase}'"));
        }
        if TAKING_CHANGES.contains(&phase) {
            self.add_tags(object, instance).await?;
            let change = drift::between(&object.spec, instance);
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
        let missing = drift::missing_tags(&object.spec, instance);
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

    /// Whether an instance that RDS does not know counts as gone.
    fn is_gone(&self, id: &str, deleted: &Deleted<'_>) -> bool {
        // Written before RDS was first asked for anything.
        if deleted.object.pointer("/status/instanceId").is_none() {
            return true;
        }
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        match *leaving
            .entry(id.to_owned())
            .or_insert(Presence::MissingSince(Instant::now()))
        {
            Presence::Seen => true,
            Presence::MissingSince(since) => since.elapsed() >= self.timing.settle,
        }
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

    fn waiting(&self, id: &str, phase: &str) -> Progress {
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

    fn note_seen(&self, id: &str) {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.insert(id.to_owned(), Presence::Seen);
    }

    fn forget(&self, id: &str) {
        self.leaving
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

    fn identity(&self, object: &CloudDatabase) -> Map<String, Value> {
        let id = identifier(object.uid().as_deref()).ok();
        id.map(|id| ("instanceId".to_owned(), json!(id)))
            .into_iter()
            .collect()
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, CloudDatabase>,
    ) -> Result<Progress, ReconcileError> {
        let object = request.parent();
        let uid = object.uid();
        let id = identifier(uid.as_deref())?;
        let Some(instance) = self.instances.describe(&id).await? else {
            return self.create(&id, object).await;
        };
        require_ours(&instance, &id, uid.as_deref())?;
        let phase = instance.db_instance_status().unwrap_or_default();
        if SERVING.contains(&phase) {
            return self.serve(&id, object, &instance).await;
        }
        if BROKEN.contains(&phase) {
            return Err(ReconcileError::Permanent {
                reason: "InstanceBroken",
                message: format!(
                    "RDS reports the instance '{id}' as '{phase}'; see its events in RDS"
                ),
            });
        }
        // Any other state passes, also one that is not known here.
        Ok(self.waiting(&id, phase))
    }

    async fn finalize(&self, deleted: &Deleted<'_>) -> Result<Finalized, ReconcileError> {
        let uid = deleted
            .object
            .pointer("/metadata/uid")
            .and_then(Value::as_str);
        let id = identifier(uid)?;
        let policy = deletion::policy(deleted);
        if policy == DeletionPolicy::Retain {
            return Ok(Finalized::Kept(format!(
                "the RDS instance '{id}' stays, as the deletion policy Retain says"
            )));
        }
        let Some(instance) = self.instances.describe(&id).await? else {
            if self.is_gone(&id, deleted) {
                self.forget(&id);
                return Ok(Finalized::Gone);
            }
            return Ok(Finalized::Waiting(self.waiting(&id, "unseen")));
        };
        require_ours(&instance, &id, uid)?;
        self.note_seen(&id);
        let phase = instance.db_instance_status().unwrap_or_default();
        if phase == "deleting" {
            return Ok(Finalized::Waiting(self.waiting(&id, phase)));
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
            self.instances.modify(&id, &lift).await?;
            return Ok(Finalized::Waiting(self.waiting(&id, phase)));
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
        let snapshot = wants_snapshot.then(|| format!("{id}-final"));
        let mut answer = self.instances.delete(&id, snapshot).await;
        // Left by a deletion that failed after it; another one is taken, never none.
        if answer
            .as_ref()
            .is_err_and(|error| error.is("DBSnapshotAlreadyExists"))
        {
            answer = self
                .instances
                .delete(&id, Some(format!("{id}-final-{}", deletion_time(deleted))))
                .await;
        }
        match answer {
            Ok(()) => tracing::info!(instance = id, ?policy, "asked RDS to delete the instance"),
            Err(error) if error.is("DBInstanceNotFound") => {}
            // Busy; RDS takes the call once it is not.
            Err(error) if error.is("InvalidDBInstanceState") => {
                return Ok(Finalized::Waiting(self.waiting(&id, phase)));
            }
            Err(error) => return Err(error.into()),
        }
        // Accepted is not gone: the next round confirms it.
        Ok(Finalized::Waiting(self.waiting(&id, "deleting")))
    }
}

/// The identifier of an object's instance: at most 63 letters, digits and hyphens, first a letter.
fn identifier(uid: Option<&str>) -> Result<String, ReconcileError> {
    match uid {
        Some(uid) if !uid.is_empty() => Ok(format!("cdb-{}", uid.to_lowercase())),
        _ => Err(ReconcileError::Permanent {
            reason: "NoUid",
            message: "the object has no UID".to_owned(),
        }),
    }
}

/// The digits of the time at which the object's deletion began.
fn deletion_time(deleted: &Deleted<'_>) -> String {
    let time = deleted
        .object
        .pointer("/metadata/deletionTimestamp")
        .and_then(Value::as_str);
    time.unwrap_or_default()
        .chars()
        .filter(char::is_ascii_digit)
        .collect()
}

fn require_ours(instance: &DbInstance, id: &str, uid: Option<&str>) -> Result<(), ReconcileError> {
    if is_owned_by(instance, uid) {
        return Ok(());
    }
    Err(ReconcileError::Permanent {
        reason: "InstanceNotOurs",
        message: format!(
            "the RDS instance '{id}' does not carry the tag '{OWNER_TAG}' of this object; restore the tag, or remove the instance"
        ),
    })
}

fn is_owned_by(instance: &DbInstance, uid: Option<&str>) -> bool {
    instance
        .tag_list()
        .iter()
        .any(|tag| tag.key() == Some(OWNER_TAG) && tag.value() == uid)
}

fn status(id: &str, phase: &str, message: &str) -> Map<String, Value> {
    [("instanceId", id), ("phase", phase), ("message", message)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect()
}
