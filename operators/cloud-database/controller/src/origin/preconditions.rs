//! Checks with the API server before an instance is created or adopted, as the watch caches may be outdated: the object still
//! exists, and it and its Namespace still choose the same region and role.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Api;
use kube::{Client, ResourceExt};
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_controller::ReconcileError;
use serde_json::json;

use crate::aws::access::NamespaceAccess;
use crate::aws::namespaces;
use crate::instance::instance_reconciler::InstanceReconciler;

/// Returns the metadata of an object that exists and is not being deleted. The watch cache may still contain a deleted object,
/// and its instance would have no owner. An object that exists with our finalizer cannot disappear before we remove it.
async fn current_metadata(
    client: &Client,
    object: &CloudDatabase,
) -> Result<ObjectMeta, ReconcileError> {
    let namespace = object.namespace().unwrap_or_default();
    let objects: Api<CloudDatabase> = Api::namespaced(client.clone(), &namespace);
    let found = objects.get_metadata_opt(&object.name_any()).await;
    let found = found.map_err(|error| ReconcileError::Transient {
        reason: "ObjectUnreadable",
        message: format!("cannot read the object, so no instance is created: {error}"),
    })?;
    let metadata = found.map(|found| found.metadata);
    let present = metadata
        .filter(|metadata| metadata.uid == object.uid() && metadata.deletion_timestamp.is_none());
    present.ok_or_else(|| ReconcileError::Transient {
        reason: "ObjectTerminating",
        message: "the object has been deleted in the meantime".to_owned(),
    })
}

impl InstanceReconciler {
    /// Returns an error if an instance of the object must not be created or adopted here, as the API server knows now.
    pub(crate) async fn require_current(
        &self,
        object: &CloudDatabase,
    ) -> Result<(), ReconcileError> {
        let metadata = current_metadata(&self.shared.client, object).await?;
        let namespace = if self.shared.watches_namespaces {
            let name = object.namespace().unwrap_or_default();
            namespaces::read(&self.shared.client, &name)
                .await
                .map_err(|error| ReconcileError::Transient {
                    reason: "NamespaceUnknown",
                    message: format!("no instance is created: {error}"),
                })?
        } else {
            NamespaceAccess::default()
        };
        let metadata = json!({"metadata": metadata});
        let access = namespace.for_object(&metadata, self.shared.clients.access_rules())?;
        if self.shared.clients.normalized(&access) == self.access {
            return Ok(());
        }
        Err(ReconcileError::Transient {
            reason: "AccessChanged",
            message: "the region or the role of the object has changed in the meantime".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the result for an object with the UID 1 and this response of the API server.
    async fn check(code: u16, response: Value) -> Result<Option<String>, ReconcileError> {
        let server = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(response.to_string().into_bytes());
            let response = Response::builder().status(code).body(body);
            async { Ok::<_, std::io::Error>(response.expect("an answer")) }
        });
        let object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "namespace": "n", "uid": "1"},
            "spec": {
                "engine": "postgres", "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"},
            },
        });
        let object = serde_json::from_value(object).expect("a database");
        let metadata = current_metadata(&Client::new(server, "n"), &object).await;
        metadata.map(|it| it.uid)
    }

    #[tokio::test]
    async fn no_instance_is_created_for_an_object_that_is_deleted_or_replaced() {
        let found = |metadata: Value| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
        let status = |code: u16| json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "", "reason": if code == 404 { "NotFound" } else { "InternalError" }});
        let reason = |result| match result {
            Err(ReconcileError::Transient { reason, .. }) => Some(reason),
            _ => None,
        };
        let result = check(200, found(json!({"name": "orders", "uid": "1"}))).await;
        assert_eq!(result, Ok(Some("1".to_owned())));
        let another = found(json!({"name": "orders", "uid": "2"}));
        let time = "2026-01-02T03:04:05Z";
        let goes = found(json!({"name": "orders", "uid": "1", "deletionTimestamp": time}));
        for (code, response) in [(200, another), (200, goes), (404, status(404))] {
            assert_eq!(
                reason(check(code, response).await),
                Some("ObjectTerminating")
            );
        }
        let unknown = check(500, status(500)).await;
        assert_eq!(reason(unknown), Some("ObjectUnreadable"));
    }
}
