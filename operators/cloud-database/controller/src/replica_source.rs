//! Source of a replica: the instance that the spec names, by its identifier or by its object.

use kube::api::Api;
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::{CloudDatabase, ReplicaOf};
use lockstep_controller::{ReadObject, ReconcileError};

use crate::identity::Identity;

/// Returns the identifier of the instance that the spec names, and the object that was read to find it, whose changes trigger
/// the next reconciliation.
pub(crate) async fn read(
    client: &Client,
    object: &CloudDatabase,
    replica_of: &ReplicaOf,
) -> (Result<String, ReconcileError>, Option<ReadObject>) {
    let Some(name) = &replica_of.name else {
        let identifier = replica_of.identifier.clone().unwrap_or_default();
        return (Ok(identifier), None);
    };
    let namespace = object.namespace().unwrap_or_default();
    let objects: Api<CloudDatabase> = Api::namespaced(client.clone(), &namespace);
    let found = objects.get_opt(name).await;
    let source = found.as_ref().ok().and_then(Option::as_ref);
    let read = ReadObject::of::<CloudDatabase>(&namespace, name, source);
    let result = match found {
        Ok(Some(source)) => created(&source),
        Ok(None) => Err(not_ready(format!(
            "the CloudDatabase '{name}', which the instance is to replicate, does not exist in the namespace of the object"
        ))),
        Err(error) => Err(ReconcileError::Transient {
            reason: "ObjectUnreadable",
            message: format!("cannot read the CloudDatabase '{name}': {error}"),
        }),
    };
    (result, Some(read))
}

/// Returns the identifier of an object's instance, if RDS has listed it.
fn created(source: &CloudDatabase) -> Result<String, ReconcileError> {
    let status = source.status.as_ref();
    if status.is_some_and(|status| status.resource_id.is_some()) {
        return Ok(Identity::of(source)?.id);
    }
    Err(not_ready(format!(
        "the CloudDatabase '{}', which the instance is to replicate, has no instance yet",
        source.name_any()
    )))
}

fn not_ready(message: String) -> ReconcileError {
    ReconcileError::Transient {
        reason: "SourceNotReady",
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_replicated_once_rds_has_listed_it() {
        let mut source = serde_json::from_value::<CloudDatabase>(json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "namespace": "shop", "uid": "1"},
            "spec": {
                "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"},
            },
        }))
        .expect("a database");
        assert!(created(&source).is_err());
        let status = json!({"resourceId": "db-A"});
        source.status = serde_json::from_value(status).expect("a status");
        assert_eq!(created(&source).as_deref(), Ok("cdb-1"));
    }
}
