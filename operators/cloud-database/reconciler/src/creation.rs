//! Creation of an object's instance, and the cases in which none is created: one that has vanished, was renamed, or was left
//! by an earlier object.
//!
//! missing? → object still there? → credentials → earlier object's? → record region and account → create
//!
//! Region and account are recorded before the call: if its answer is lost, the instance may exist there and nowhere else.
//! Once they are, no instance of an earlier object is looked for: that object was gone when this one came.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use cloud_database_rules::{CloudDatabase, REPLACES_INSTANCE};
use controller::{ReconcileError, ReconcileOutput};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::call_error::CallError;
use crate::credentials;
use crate::drift;
use crate::reconciler::{CloudDatabaseReconciler, fields, observed, require_ours, with_status};
use crate::record::RecordedInstance;
use crate::standing;
use crate::tags;

impl CloudDatabaseReconciler {
    /// Asks for the instance that RDS does not show, unless it was there before.
    pub(crate) async fn create(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &RecordedInstance<'_>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        if let Some(shown) = record.display_name() {
            self.require_not_renamed(id, record, object.uid().as_deref())
                .await?;
            if !replaced(object).contains(shown) {
                if !self.is_within_grace_period(id) {
                    return Ok(self.unseen(id));
                }
                return Err(self.missing(id, shown));
            }
        }
        standing::require_valid_credentials(&self.client, object).await?;
        let user = credentials::read(&self.client, object).await?;
        if record.region.is_none() || record.account_id.is_none() {
            self.require_first(object).await?;
            return self.locating(id).await;
        }
        match self.rds.create(id, object, &user).await {
            Ok(instance) => {
                tracing::info!(instance = id, "asked RDS for a new instance");
                let phase = instance.db_instance_status().unwrap_or("creating");
                let mut progress = self.waiting(id, phase);
                progress.status.extend(observed(&instance));
                let enforced = json!(drift::ENFORCED_AT_CREATION);
                let enforced = fields([("enforcedFields", enforced)]);
                progress.status.extend(enforced);
                Ok(progress)
            }
            // An earlier call was applied and its reply lost.
            Err(error) if error.is("DBInstanceAlreadyExists") => {
                match self.rds.describe(id).await? {
                    Some(instance) => {
                        require_ours(&instance, id, object.uid().as_deref())?;
                        let phase = instance.db_instance_status().unwrap_or("creating");
                        let mut progress = self.waiting(id, phase);
                        progress.status.extend(observed(&instance));
                        Ok(progress)
                    }
                    None => Err(ReconcileError::Transient {
                        reason: "InstanceUnseen",
                        message: format!("RDS knows the instance '{id}' and does not show it yet"),
                    }),
                }
            }
            Err(error) => Err(creation_rejected(error, record)),
        }
    }

    /// Records where the instance is about to be created; the reconciliation that finds it recorded creates it.
    async fn locating(&self, id: &str) -> Result<ReconcileOutput, ReconcileError> {
        let location = self.rds.location().await?;
        let message = format!("the RDS instance '{id}' is about to be created");
        let status = fields([
            ("region", json!(location.region)),
            ("accountId", json!(location.account_id)),
            ("message", json!(message)),
        ]);
        Ok(ReconcileOutput {
            requeue_after: Duration::ZERO,
            ..self.in_progress(status, message)
        })
    }

    /// Requires that an instance that RDS does not know by its identifier has not got another one.
    pub(crate) async fn require_not_renamed(
        &self,
        id: &str,
        record: &RecordedInstance<'_>,
        uid: Option<&str>,
    ) -> Result<(), ReconcileError> {
        let Some(resource_id) = record.resource_id else {
            return Ok(());
        };
        let found = self.rds.by_resource_id(resource_id).await?;
        // Whether its tags were lost, too, does not matter; those of another object do.
        let is_ours =
            |found: &&DbInstance| tags::is_owned_by(found, uid) || !tags::has_owner(found);
        let mut found = found.iter().filter(is_ours);
        let Some(instance) = found.next() else {
            return Ok(());
        };
        let now = instance.db_instance_identifier().unwrap_or_default();
        // Shown in the meantime.
        if now == id {
            return Ok(());
        }
        Err(self.stalled(
            "InstanceRenamed",
            format!(
                "the RDS instance '{id}' ({resource_id}) has the identifier '{now}' now and is not changed; rename it to '{id}' in RDS"
            ),
        ))
    }

    /// The error for an instance that RDS has shown and does not know any more. A new one would be empty, and would take
    /// the place of a database that may have to be restored.
    fn missing(&self, id: &str, shown: &str) -> ReconcileError {
        self.stalled(
            "InstanceMissing",
            format!(
                "the RDS instance '{id}' ({shown}) does not exist any more, and this controller has not deleted it. No other is created, since it would be empty. Restore a snapshot as '{id}' with the tags of the instance, or have a new, empty instance by the annotation {REPLACES_INSTANCE}={shown}"
            ),
        )
    }

    /// Requires that no instance was made for an earlier object of the same namespace and name: it holds the data that
    /// the author most likely expects to find.
    async fn require_first(&self, object: &CloudDatabase) -> Result<(), ReconcileError> {
        let replaced = replaced(object);
        let found = self.rds.of_earlier_objects(object).await?;
        let mut earlier = found.iter().filter_map(|instance| {
            let resource_id = instance.dbi_resource_id().unwrap_or_default();
            (!replaced.contains(resource_id)).then_some((instance, resource_id))
        });
        let Some((instance, resource_id)) = earlier.next() else {
            return Ok(());
        };
        let id = instance.db_instance_identifier().unwrap_or_default();
        let owner = tags::owner(instance);
        Err(self.stalled(
            "InstanceOfEarlierObject",
            format!(
                "the RDS instance '{id}' ({resource_id}) was made for another object of this namespace and name ({owner}): an earlier one, or one of another cluster, whose database it may be. No second one is created, since it would be empty. Have a new, empty one beside it by the annotation {REPLACES_INSTANCE}={resource_id}; clusters that share an account need different --cluster-name"
            ),
        ))
    }

    /// An error that only the author or an administrator can resolve, perhaps in RDS.
    fn stalled(&self, reason: &'static str, message: String) -> ReconcileError {
        // The phase is RDS' word for an instance that it knows.
        let status = fields([("phase", Value::Null), ("message", json!(message))]);
        with_status(
            status,
            self.requeue(ReconcileError::Permanent { reason, message }),
        )
    }
}

/// The error of a creation. Where RDS has refused it, nothing was created, and the object belongs to no region yet.
fn creation_rejected(error: CallError, record: &RecordedInstance<'_>) -> ReconcileError {
    let is_nowhere = error.is_rejected() && record.display_name().is_none();
    let error = error.into();
    if is_nowhere {
        let status = fields([("region", Value::Null), ("accountId", Value::Null)]);
        return with_status(status, error);
    }
    error
}

/// Returns the resource IDs of the instances that the author has given up for a new one.
pub(crate) fn replaced(object: &CloudDatabase) -> BTreeSet<&str> {
    let annotation = object.annotations().get(REPLACES_INSTANCE);
    let ids = annotation.map_or("", String::as_str).split(',');
    ids.map(str::trim).filter(|id| !id.is_empty()).collect()
}
