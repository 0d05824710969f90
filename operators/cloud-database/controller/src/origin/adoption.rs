//! Adoption of an existing instance by an object, instead of the creation of one.
//!
//! exists? → owned by another object? → can it match the spec? → object still exists? → add the owner tags
//!
//! Nothing is modified before the next description shows the owner tag of this object: if two objects adopt the same
//! instance at the same time, only the last one that has tagged it goes on.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use lockstep_cloud_database_api::{CloudDatabase, CloudDatabaseSpec, CloudDatabaseStatus};
use lockstep_controller::{OperatorEvent, ReconcileOutput};

use crate::credentials::master_user::MasterPassword;
use crate::instance::described::Described;
use crate::instance::drift;
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::observed_status;
use crate::instance::record::Record;
use crate::instance::step_error::StepError;
use crate::instance::tags::{self, OWNER_TAG};
use crate::origin::source_owner::{FoundSource, SourceName};

impl InstanceReconciler {
    /// Adds the owner tags of an object to an instance that no object owns, and that can match the spec.
    pub(crate) async fn adopt(
        &self,
        described: &Described<'_>,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        let Described {
            id,
            object,
            instance,
            record,
            user,
        } = *described;
        self.require_adoptable(described).await?;
        let version = self.credentials_version(id, object, instance, record);
        // It is taken to have the password of the Secret.
        let of_secret = || match &user.as_ref().ok()?.password {
            MasterPassword::Known(known) => Some(known.version.clone()),
            MasterPassword::NotStored | MasterPassword::Managed { .. } => None,
        };
        let version = version.or_else(of_secret);
        if record.region.is_none() || record.account_id.is_none() {
            // If the process ends after the call that tags the instance, the status says that it may be the object's. The next
            // reconciliation adopts it.
            let location = self.rds.location().await?;
            status.region = Some(location.region);
            status.account_id = Some(location.account_id);
            status.credentials_version = version;
            let message = format!("the RDS instance '{id}' is about to be adopted");
            return Ok(ReconcileOutput {
                requeue_after: Duration::ZERO,
                ..self.in_progress(status, message)
            });
        }
        self.require_current(object).await?;
        let arn = instance.db_instance_arn().unwrap_or_default();
        let owner_tags = tags::of_owner(object, self.rds.cluster_name());
        self.rds.tag(arn, &owner_tags).await?;
        tracing::info!(instance = id, "adopted an instance of RDS");
        observed_status::record(status, instance);
        // The status has the resource ID of this instance from now on.
        status.credentials_version = version;
        let message = format!("the RDS instance '{id}' has the tags of this object now");
        Ok(ReconcileOutput {
            requeue_after: Duration::ZERO,
            events: vec![OperatorEvent {
                is_warning: false,
                reason: "Adopted",
                note: format!("the object has adopted the RDS instance '{id}'"),
            }],
            ..self.in_progress(status, message)
        })
    }

    /// Returns an error if another object owns an instance, if the object may not use it, or if it cannot match the spec.
    async fn require_adoptable(&self, described: &Described<'_>) -> Result<(), StepError> {
        let Described {
            id,
            object,
            instance,
            user,
            ..
        } = *described;
        if tags::has_owner(instance) {
            return Err(self.stalled_in(
                instance.db_instance_status(),
                "InstanceOwned",
                format!(
                    "the RDS instance '{id}' belongs to another object ({}) and is not modified. If that object does not exist any more, remove the tag '{OWNER_TAG}' from the instance in RDS",
                    tags::owner(instance)
                ),
            ));
        }
        let source = FoundSource {
            name: SourceName::Instance(id),
            arn: instance.db_instance_arn(),
            tags: instance.tag_list(),
        };
        self.require_allowed(object, source).await?;
        let user = user.as_ref().map_err(Clone::clone)?;
        let mut conflicts = conflicts(&object.spec, instance);
        conflicts.extend(drift::other_user(&user.name, instance));
        if instance.master_user_secret().is_some() && object.spec.credentials.managed.is_none() {
            conflicts.push(
                "RDS manages its password; adopt it with `spec.credentials.managed`, and change that afterwards"
                    .to_owned(),
            );
        }
        if conflicts.is_empty() {
            return Ok(());
        }
        Err(self.stalled_in(
            instance.db_instance_status(),
            "AdoptionConflict",
            format!(
                "the RDS instance '{id}' cannot match the spec, and is neither adopted nor modified: {}. Create the object with a spec that the instance can match",
                conflicts.join("; ")
            ),
        ))
    }

    /// Returns the state of an object whose instance does not exist, and for which none is created.
    pub(crate) fn absent(
        &self,
        id: &str,
        object: &CloudDatabase,
        record: &Record,
        status: &mut CloudDatabaseStatus,
    ) -> Result<ReconcileOutput, StepError> {
        let Some(shown) = record.listed_id() else {
            let why = if object.spec.adopt.is_some() {
                "none is created for an object with `spec.adopt`"
            } else {
                "none is created while `spec.managementPolicy` is Observe"
            };
            return Err(self.stalled(
                "InstanceNotFound",
                format!("the RDS instance '{id}' does not exist in the region and account of the controller, and {why}"),
            ));
        };
        if !self.is_past_grace_period(id) {
            return Ok(self.unseen(id, status));
        }
        Err(self.stalled(
            "InstanceMissing",
            format!(
                "the RDS instance '{id}' ({shown}) no longer exists, and this controller did not delete it. No other one is created. Restore a snapshot as '{id}' in RDS, or create another CloudDatabase with `spec.restoreFrom`"
            ),
        ))
    }
}

/// Returns the differences because of which an instance can never match the spec.
pub(crate) fn conflicts(spec: &CloudDatabaseSpec, instance: &DbInstance) -> Vec<String> {
    let mut conflicts = Vec::new();
    let engine = instance.engine().unwrap_or_default();
    if engine != spec.engine.as_str() {
        conflicts.push(format!("its engine is '{engine}'"));
    }
    if let Some(cluster) = instance.db_cluster_identifier() {
        conflicts.push(format!("it is an instance of the DB cluster '{cluster}'"));
    }
    conflicts.extend(drift::immutable(spec, instance));
    conflicts
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(fields: &Value) -> CloudDatabaseSpec {
        let mut spec = json!({
            "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
            "engineVersion": "17", "databaseName": "shop",
            "credentials": {"username": "app", "secretName": "s"},
        });
        for (name, value) in fields.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        serde_json::from_value(spec).expect("a spec")
    }

    #[test]
    fn only_what_no_modification_can_change_keeps_an_instance_from_being_adopted() {
        let instance = DbInstance::builder()
            .engine("postgres")
            .engine_version("17.2")
            .db_instance_class("db.m7g.large")
            .allocated_storage(500)
            .db_name("shop")
            .publicly_accessible(true)
            .storage_encrypted(true);
        let count = |fields: &Value, instance: &DbInstance| conflicts(&spec(fields), instance);
        let none = Vec::<String>::new();
        assert_eq!(count(&json!({}), &instance.clone().build()), none);
        for (fields, text) in [
            (json!({"engine": "mysql"}), "engine is 'postgres'"),
            (json!({"databaseName": "stock"}), "named 'shop'"),
            (json!({"encryption": {"enabled": false}}), "encrypted"),
            (json!({"engineVersion": "16"}), "downgraded"),
        ] {
            let found = count(&fields, &instance.clone().build());
            assert!(found.iter().any(|it| it.contains(text)), "{found:?}");
        }
        let member = instance.db_cluster_identifier("blue").build();
        assert_eq!(count(&json!({}), &member).len(), 1);
    }
}
