//! Objects that a reconciliation has read by their names.

use kube::api::ApiResource;
use kube::{Resource, ResourceExt};

/// Object that a reconciliation has read from the API server by its name, whether it exists or not. Until the next
/// reconciliation, a change of it triggers one. No content is cached: only the metadata in its namespace is watched.
///
/// ```
/// use lockstep_controller::ReadObject;
/// use k8s_openapi::api::core::v1::Secret;
///
/// let read = ReadObject::of::<Secret>("team-a", "credentials", None);
/// assert_eq!(read.resource_version, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadObject {
    /// Its type.
    pub resource: ApiResource,
    /// Its namespace; none if it is cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Resource version that was read; none if it did not exist, or could not be read.
    pub resource_version: Option<String>,
}

impl ReadObject {
    /// Returns a cluster-scoped object that was read, with its resource version.
    pub fn of_cluster<T>(name: &str, resource_version: Option<String>) -> Self
    where
        T: Resource<DynamicType = ()>,
    {
        Self {
            resource: ApiResource::erase::<T>(&()),
            namespace: None,
            name: name.to_owned(),
            resource_version,
        }
    }

    /// Returns a namespaced object as it was read.
    pub fn of<T>(namespace: &str, name: &str, found: Option<&T>) -> Self
    where
        T: Resource<DynamicType = ()>,
    {
        Self {
            resource: ApiResource::erase::<T>(&()),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            resource_version: found.and_then(ResourceExt::resource_version),
        }
    }
}
