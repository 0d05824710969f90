//! Admission reviews as the API server sends them.

use serde_json::{Value, json};

/// Kind and resource of the reviewed object.
#[derive(Clone, Copy)]
pub(crate) struct ObjectType {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) resource: &'static str,
}

/// Returns a review of an object.
pub(crate) fn review(
    of: ObjectType,
    operation: &str,
    object: &Value,
    old: Option<&Value>,
) -> Value {
    let resource = json!({"group": of.group, "version": "v1alpha1", "resource": of.resource});
    let kind = json!({"group": of.group, "version": "v1alpha1", "kind": of.kind});
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "orders", "namespace": "shop", "operation": operation,
            "userInfo": {
                "username": "system:serviceaccount:shop:deployer",
                "uid": "b1a8f2d0-7f5b-4bb7-9d0c-93a10dd0f2a6",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
            },
            "object": object, "oldObject": old, "dryRun": false,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"},
        },
    })
}
