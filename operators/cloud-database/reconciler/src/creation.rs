//! Creation of an object's instance, and the cases in which none is created: one that has vanished, and one that an
//! earlier object has left.

use std::collections::BTreeSet;

use cloud_database_rules::{CloudDatabase, REPLACES_INSTANCE};
use controller::{Progress, ReconcileError};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use crate::credentials;
use crate::drift;
use crate::reconciler::{CloudDatabaseReconciler, fields, require_ours};
use crate::record::Record;
use crate::standing;

impl CloudDatabaseReconciler {
    /// Asks for the instance that RDS does not show, unless it was there before.
    pub(crate) async fn create(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &Record<'_>,
    ) -> Result<Progress, ReconcileError> {
        if let Some(resource_id) = record.resource_id
            && !replaced(object).contains(resource_id)
        {
            return Err(self.missing(id, resource_id));
        }
        standing::require(&self.client, object).await?;
        let user = credentials::read(&self.client, object).await?;
        self.require_first(object).await?;
        match self.instances.create(id, object, &user).await {
            Ok(instance) => {
                tracing::info!(instance = id, "asked RDS for a new instance");
                let phase = instance.db_instance_status().unwrap_or("creating");
                let mut progress = self.waiting(id, phase);
                progress.status.insert(
                    "enforcedFields".to_owned(),
                    json!(drift::ENFORCED_AT_CREATION),
                );
                Ok(progress)
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

    /// The error for an instance that RDS has shown and does not know any more. A new one would be empty, and would take
    /// the place of a database that may have to be restored.
    fn missing(&self, id: &str, resource_id: &str) -> ReconcileError {
        let message = format!(
            "the RDS instance '{id}' ({resource_id}) does not exist any more, and this controller has not deleted it. No other is created, since it would be empty. Restore a snapshot as '{id}' with the tags of the instance, or have a new, empty instance by the annotation {REPLACES_INSTANCE}={resource_id}"
        );
        // The phase is RDS' word for an instance that it knows.
        let status = fields([("phase", Value::Null), ("message", json!(message))]);
        let error = ReconcileError::Permanent {
            reason: "InstanceMissing",
            message,
        };
        let error = ReconcileError::Recheck {
            after: self.timing.resync,
            error: Box::new(error),
        };
        told(status, error)
    }

    /// Requires that no instance was made for an earlier object of the same namespace and name: it holds the data that
    /// the author most likely expects to find.
    async fn require_first(&self, object: &CloudDatabase) -> Result<(), ReconcileError> {
        let replaced = replaced(object);
        let found = self.instances.of_earlier_objects(object).await?;
        let mut earlier = found.iter().filter_map(|instance| {
            let resource_id = instance.dbi_resource_id().unwrap_or_default();
            let id = instance.db_instance_identifier().unwrap_or_default();
            (!replaced.contains(resource_id)).then_some((id, resource_id))
        });
        let Some((id, resource_id)) = earlier.next() else {
            return Ok(());
        };
        let message = format!(
            "the RDS instance '{id}' ({resource_id}) was made for an earlier object of this namespace and name. No second one is created, since it would be empty. Delete that instance in RDS, or have a new, empty one beside it by the annotation {REPLACES_INSTANCE}={resource_id}"
        );
        let status = fields([("message", json!(message))]);
        let error = ReconcileError::Permanent {
            reason: "InstanceOfEarlierObject",
            message,
        };
        let error = ReconcileError::Recheck {
            after: self.timing.resync,
            error: Box::new(error),
        };
        Err(told(status, error))
    }
}

fn told(status: Map<String, Value>, error: ReconcileError) -> ReconcileError {
    ReconcileError::Told {
        status,
        error: Box::new(error),
    }
}

/// Returns the resource IDs of the instances that the author has given up for a new one.
fn replaced(object: &CloudDatabase) -> BTreeSet<&str> {
    let annotation = object.annotations().get(REPLACES_INSTANCE);
    let ids = annotation.map_or("", String::as_str).split(',');
    ids.map(str::trim).filter(|id| !id.is_empty()).collect()
}
