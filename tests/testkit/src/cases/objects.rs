//! Objects of cases in a cluster.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use lockstep_envtest::Cluster;
use serde_json::{Value, json};

/// Namespace of the objects.
const NAMESPACE: &str = "default";

/// Returns the API of the kind of an object.
pub(super) async fn api_of(cluster: &Cluster, object: &Value) -> Api<DynamicObject> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, text("kind"));
    let client = cluster.client();
    let found: Result<(ApiResource, _), _> = pinned_kind(&client, &gvk).await;
    let (resource, capabilities) = found.expect("the kind of the case is installed");
    match capabilities.scope {
        Scope::Namespaced => Api::namespaced_with(client, NAMESPACE, &resource),
        Scope::Cluster => Api::all_with(client, &resource),
    }
}

/// Returns an object of a case under another name.
pub(super) fn named(object: &Value, name: &str) -> DynamicObject {
    let mut object = object.clone();
    object["metadata"]["name"] = json!(name);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    serde_json::from_value(object).expect("the case has an object")
}
