//! Source of a replica: the instance that the spec names, by its identifier or by its object.

use kube::api::Api;
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::{CloudDatabase, ReplicaOf};
use lockstep_controller::{ReadObject, ReconcileError, path_segment};

use crate::aws::location::Location;
use crate::instance::identity::Identity;

/// Returns the identifier of the instance that the spec names, which must be in a location, and the object that was read to find it, whose changes trigger
/// the next reconciliation.
pub(crate) async fn read(
    client: &Client,
    object: &CloudDatabase,
    replica_of: &ReplicaOf,
    location: &Location,
) -> (Result<String, ReconcileError>, Option<ReadObject>) {
    let Some(name) = &replica_of.name else {
        let identifier = replica_of.identifier.clone().unwrap_or_default();
        return (Ok(identifier), None);
    };
    let namespace = object.namespace().unwrap_or_default();
    let objects: Api<CloudDatabase> = Api::namespaced(client.clone(), &namespace);
    let found = objects.get_opt(&path_segment(name)).await;
    let source = found.as_ref().ok().and_then(Option::as_ref);
    let read = ReadObject::of::<CloudDatabase>(&namespace, name, source);
    let result = match found {
        Ok(Some(source)) => created(&source, location),
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

/// Returns the identifier of an object's instance, if RDS has listed it. In another region or account, another instance can have
/// the identifier.
fn created(source: &CloudDatabase, location: &Location) -> Result<String, ReconcileError> {
    let status = source.status.as_ref();
    if let Some(status) = status
        && status.resource_id.is_some()
    {
        let region = status.region.as_ref().unwrap_or(&location.region);
        let account_id = status.account_id.as_ref().unwrap_or(&location.account_id);
        if (region, account_id) == (&location.region, &location.account_id) {
            return Ok(Identity::of(source)?.id);
        }
        return Err(ReconcileError::Permanent {
            reason: "SourceElsewhere",
            message: format!(
                "the instance of the CloudDatabase '{}' is in region {region} of account {account_id}, and a replica can only be in the same region and account; RDS was not called",
                source.name_any()
            ),
        });
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
        let here = Location {
            region: "eu-central-1".to_owned(),
            account_id: "1".to_owned(),
        };
        assert!(created(&source, &here).is_err());
        for (status, expected) in [
            (json!({"resourceId": "db-A"}), Ok("cdb-1")),
            (
                json!({"resourceId": "db-A", "region": "eu-central-1", "accountId": "1"}),
                Ok("cdb-1"),
            ),
            (
                json!({"resourceId": "db-A", "region": "us-east-1", "accountId": "1"}),
                Err("SourceElsewhere"),
            ),
            (
                json!({"resourceId": "db-A", "region": "eu-central-1", "accountId": "2"}),
                Err("SourceElsewhere"),
            ),
        ] {
            source.status = serde_json::from_value(status).expect("a status");
            let found = created(&source, &here);
            let found = found.as_deref().map_err(ReconcileError::reason);
            assert_eq!(found, expected);
        }
    }
}
