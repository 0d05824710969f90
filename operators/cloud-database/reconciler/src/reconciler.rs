//! The operator's two steps: keep the instance as the object says, and end it with the object.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_sdk_rds::types::DbInstance;
use cloud_database_rules::{CloudDatabase, DeletionPolicy, FINALIZER};
use controller::{Deleted, Finalized, Progress, Readiness, Reconcile, ReconcileError};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};

use crate::credentials;
use crate::deletion;
use crate::drift::{self, Modification};
use crate::instances::{Instances, OWNER_TAG};

/// How often RDS is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// While something is under way. An instance takes minutes to come and to go.
    pub poll: Duration,
    /// While all is as it should be, to see what others have changed.
    pub resync: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(30),
            resync: Duration::from_mins(10),
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
}

/// How long a change that RDS has agreed to may take to show before it is asked for again.
const ASK_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// States in which an instance serves, and takes changes.
const SERVING: &[&str] = &["available", "storage-optimization"];

/// States that only the user can end: RDS can do nothing with the instance but delete it.
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
        }
    }

    async fn create(&self, id: &str, object: &CloudDatabase) -> Result<Progress, ReconcileError> {
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
        let missing_tags = drift::missing_tags(&object.spec, instance);
        if let Some(arn) = instance
            .db_instance_arn()
            .filter(|_| !missing_tags.is_empty())
        {
            self.instances.tag(arn, &missing_tags).await?;
        }
        let change = drift::between(&object.spec, instance);
        if change.is_empty() {
            self.forget(id);
            return Ok(self.available(id, instance, "the database can be used".to_owned()));
        }
        let fields = change.fields().join(", ");
        if !self.may_ask(id, &change) {
            let message = format!(
                "the database can be used; RDS has agreed to change {fields} and has not yet done so"
            );
            return Ok(self.available(id, instance, message));
        }
        tracing::info!(instance = id, fields, "asking RDS for a change");
        let modified = self.instances.modify(id, &change).await?;
        self.remember(id, change);
        let mut progress = self.available(
            id,
            &modified,
            format!("the database can be used; RDS is changing {fields}"),
        );
        progress.requeue_after = self.timing.poll;
        Ok(progress)
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
            readiness: Readiness {
                ready: true,
                reason: "Available",
                message,
            },
            requeue_after: self.timing.resync,
        }
    }

    fn waiting(&self, id: &str, phase: &str) -> Progress {
        let message = format!("RDS reports the instance as '{phase}'");
        Progress {
            status: status(id, phase, &message),
            readiness: Readiness {
                ready: false,
                reason: "InProgress",
                message,
            },
            requeue_after: self.timing.poll,
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

    fn forget(&self, id: &str) {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }
}

#[async_trait]
impl Reconcile for CloudDatabaseReconciler {
    type Kind = CloudDatabase;

    fn finalizer(&self) -> &'static str {
        FINALIZER
    }

    async fn reconcile(&self, object: &CloudDatabase) -> Result<Progress, ReconcileError> {
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
            tracing::info!(
                instance = id,
                "the instance stays, as the deletion policy says"
            );
            return Ok(Finalized::Gone);
        }
        let Some(instance) = self.instances.describe(&id).await? else {
            self.forget(&id);
            return Ok(Finalized::Gone);
        };
        require_ours(&instance, &id, uid)?;
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
        let final_snapshot = (policy == DeletionPolicy::Snapshot).then(|| format!("{id}-final"));
        if final_snapshot.is_some() && BROKEN.contains(&phase) {
            return Err(ReconcileError::Permanent {
                reason: "NoFinalSnapshot",
                message: format!(
                    "RDS reports the instance '{id}' as '{phase}' and takes no final snapshot of it; set `spec.deletionPolicy` to Retain and remove the instance by hand"
                ),
            });
        }
        match self.instances.delete(&id, final_snapshot).await {
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
