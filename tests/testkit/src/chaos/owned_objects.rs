//! Owned objects in the cluster.

use std::collections::BTreeSet;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::{Client, ResourceExt};
use serde_json::Value;

/// Returns the type of an object.
pub(crate) fn resource(object: &Value) -> ApiResource {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")))
}

/// Returns the API of an owned object: in its namespace, or in that of its owners.
pub(crate) fn api(
    owners: &Api<DynamicObject>,
    resource: &ApiResource,
    object: &Value,
) -> Api<DynamicObject> {
    let client = owners.clone().into_client();
    let namespace = object["metadata"]["namespace"].as_str();
    match namespace.or(owners.namespace()) {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    }
}

/// Returns an object as JSON.
pub(crate) fn value_of(object: &DynamicObject) -> Value {
    serde_json::to_value(object).expect("an object is JSON")
}

/// Objects of the types that an operator owns.
pub(crate) struct OwnedObjects {
    client: Client,
    namespace: Option<String>,
    types: Vec<ApiResource>,
    /// UIDs of the objects that existed before the trial.
    earlier: BTreeSet<String>,
}

impl OwnedObjects {
    /// Remembers which objects of these types exist before a trial.
    pub(crate) async fn before_trial(
        client: Client,
        namespace: Option<&str>,
        types: Vec<ApiResource>,
    ) -> Self {
        let mut owned = Self {
            client,
            namespace: namespace.map(str::to_owned),
            types,
            earlier: BTreeSet::new(),
        };
        let existing = owned.list().await.into_iter();
        owned.earlier = existing.filter_map(|(_, object)| object.uid()).collect();
        owned
    }

    /// Lists the objects that are new since the trial began, except for those that belong to users.
    pub(crate) async fn list_without(
        &self,
        related: &[Value],
    ) -> Vec<(ApiResource, DynamicObject)> {
        let mut all = self.list().await;
        all.retain(|(resource, object)| {
            !related.iter().any(|related| {
                let metadata = &related["metadata"];
                let namespace = metadata["namespace"].as_str().or(self.namespace.as_deref());
                related["kind"] == resource.kind
                    && metadata["name"].as_str() == object.metadata.name.as_deref()
                    && namespace == object.metadata.namespace.as_deref()
            })
        });
        all
    }

    /// Lists the objects that are new since the trial began.
    async fn list(&self) -> Vec<(ApiResource, DynamicObject)> {
        let mut all = Vec::new();
        for resource in &self.types {
            let api = match &self.namespace {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
                None => Api::<DynamicObject>::all_with(self.client.clone(), resource),
            };
            let listed = api.list(&ListParams::default()).await;
            let listed = listed.expect("the API server lists the owned objects");
            all.extend(listed.into_iter().map(|mut object| {
                // A list does not contain the types of its items.
                object.types = Some(TypeMeta {
                    api_version: resource.api_version.clone(),
                    kind: resource.kind.clone(),
                });
                (resource.clone(), object)
            }));
        }
        let is_new = |object: &DynamicObject| {
            let uid = object.uid().unwrap_or_default();
            // Some control planes create this one in each namespace.
            !self.earlier.contains(&uid) && object.name_any() != "kube-root-ca.crt"
        };
        all.retain(|(_, object)| is_new(object));
        all
    }

    /// Deletes an object if none of its owners exists, as the garbage collector does, and returns true.
    pub(crate) async fn collect(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        owners: &BTreeSet<String>,
    ) -> bool {
        let references = object.owner_references();
        let is_garbage =
            !references.is_empty() && references.iter().all(|owner| !owners.contains(&owner.uid));
        if is_garbage {
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(self.client.clone(), &namespace, resource),
                None => Api::all_with(self.client.clone(), resource),
            };
            // One that is gone already needs no deletion.
            let _ = api
                .delete(&object.name_any(), &DeleteParams::background())
                .await;
        }
        is_garbage
    }
}
