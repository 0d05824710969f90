//! Types of owned objects.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use kube::api::ApiResource;
use kube::discovery::Scope;
use serde_json::{Value, json};

/// Update strategy: what happens to a child that differs from the desired one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// Updates the child by server-side apply.
    #[default]
    Apply,
    /// Deletes the child, and creates it again once it is gone: for objects that cannot be changed in place, such
    /// as a Job.
    Recreate,
    /// Leaves the child unchanged until a user deletes it, and then creates the desired one.
    OnDelete,
    /// Creates the child if it is missing and never changes it: for content that would differ each time, such as a
    /// generated password.
    CreateOnly,
}

/// Type of owned objects. An operator can create only objects of the types that it declares.
///
/// ```
/// use lockstep_controller::{OwnedType, UpdateStrategy};
/// use k8s_openapi::api::batch::v1::Job;
///
/// // A Job cannot be changed in place.
/// let jobs = OwnedType::namespaced::<Job>().update_strategy(UpdateStrategy::Recreate);
/// assert!(jobs.is_namespaced());
/// assert_eq!(jobs.api_resource().plural, "jobs");
/// ```
#[derive(Clone, Debug)]
pub struct OwnedType {
    pub(crate) resource: ApiResource,
    pub(crate) is_namespaced: bool,
    pub(crate) strategy: UpdateStrategy,
    pub(crate) has_finalizer: bool,
    pub(crate) is_cleanup_job: bool,
}

impl OwnedType {
    /// Declares a namespaced type.
    pub fn namespaced<T>() -> Self
    where
        T: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Self::dynamic(ApiResource::erase::<T>(&()), &Scope::Namespaced)
    }

    /// Declares a cluster-scoped type. A namespaced parent cannot be its owner for the garbage collector: such a
    /// child is identified by its labels, and the parent gets a finalizer so that the child is deleted with it.
    pub fn cluster_scoped<T>() -> Self
    where
        T: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Self::dynamic(ApiResource::erase::<T>(&()), &Scope::Cluster)
    }

    /// Declares a type that has no Rust type.
    pub fn dynamic(resource: ApiResource, scope: &Scope) -> Self {
        Self {
            resource,
            is_namespaced: *scope == Scope::Namespaced,
            strategy: UpdateStrategy::default(),
            has_finalizer: false,
            is_cleanup_job: false,
        }
    }

    /// Sets the update strategy.
    #[must_use]
    pub fn update_strategy(mut self, strategy: UpdateStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Protects the children with a finalizer. A child that a user deletes is kept until its owner removes the
    /// finalizer: for objects that cannot be recreated without a loss. Both the child and its owner get the
    /// owner's finalizer.
    #[must_use]
    pub fn with_finalizer(mut self) -> Self {
        self.has_finalizer = true;
        self
    }

    /// Declares a type for cleanup, such as a Job that runs before its owner is removed: it may be desired while
    /// the owner is being deleted, and is deleted just before the owner is. It has no owner reference, since the
    /// garbage collector would delete it in the middle of its work; its labels identify the owner, which gets a
    /// finalizer.
    #[must_use]
    pub fn cleanup_job(mut self) -> Self {
        self.is_cleanup_job = true;
        self
    }

    /// Returns the permissions that the controller needs on these objects, as an RBAC rule.
    pub fn rbac_rule(&self) -> Value {
        json!({
            "apiGroups": [self.resource.group],
            "resources": [self.resource.plural],
            "verbs": ["create", "delete", "get", "list", "patch", "watch"],
        })
    }

    /// Returns the API resource.
    pub fn api_resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Returns true if the type is namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.is_namespaced
    }

    pub(crate) fn is_same_type_as(&self, other: &Self) -> bool {
        self.resource.group == other.resource.group && self.resource.plural == other.resource.plural
    }

    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        self.resource.api_version == api_version && self.resource.kind == kind
    }
}
