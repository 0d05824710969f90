//! Objects of any kind, as the API server returns them.

use kube::api::{Api, ApiResource, DynamicObject, GetParams, TypeMeta};
use kube::core::{DynamicResourceScope, Request};
use kube::{Client, Resource};

use crate::custom_object::CustomMetadata;
use crate::field_manager::FieldManager;
use crate::request_limits::path_segment;

/// Returns the API of a type, in one namespace or in all.
pub(crate) fn api<K>(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let client = client.clone();
    match namespace {
        Some(namespace) => Api::namespaced_with(client, &path_segment(namespace), resource),
        None => Api::all_with(client, resource),
    }
}

/// Returns the metadata of an object, or none if it does not exist.
pub(crate) async fn metadata(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<CustomMetadata>, kube::Error> {
    let api: Api<CustomMetadata> = api(client, resource, namespace);
    let request = Request::new(api.resource_url())
        .get_metadata(&path_segment(name), &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    match client.request::<CustomMetadata>(request).await {
        Ok(metadata) => Ok(Some(metadata)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the type of an object, and removes the managed fields of other managers, which are often the larger part.
pub(crate) fn set_type_meta(
    object: &mut DynamicObject,
    resource: &ApiResource,
    manager: &FieldManager,
) {
    // The items of a list have no type.
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    if let Some(entries) = &mut object.metadata.managed_fields {
        entries.retain(|entry| manager.is_ours(entry));
    }
}

/// Resource versions are increasing numbers, for one type over all its objects:
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>.
pub(crate) fn resource_version(child: &DynamicObject) -> Option<u64> {
    child.metadata.resource_version.as_ref()?.parse().ok()
}

/// Returns true if `one` is a later state of the same object than `other`.
pub(crate) fn is_later(one: &DynamicObject, other: &DynamicObject) -> bool {
    one.metadata.uid == other.metadata.uid && resource_version(one) > resource_version(other)
}
