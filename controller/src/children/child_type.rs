//! What kinds of children an operator makes.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use kube::api::ApiResource;
use kube::discovery::Scope;
use serde_json::{Value, json};

/// What happens to a child that is not as it is desired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// It is brought to what is desired, by server-side apply.
    #[default]
    Apply,
    /// It is deleted and made again once it is gone: for what cannot be changed in place, such as a Job.
    Recreate,
    /// It stays as it is until somebody deletes it, and is then made as desired.
    OnDelete,
    /// Made where it is missing, and left alone from then on: for what would differ each time, such as a
    /// generated password.
    CreateOnly,
}

/// A type of children that an operator makes. It may make no others.
#[derive(Clone, Debug)]
pub struct OwnedType {
    pub(super) resource: ApiResource,
    pub(crate) is_namespaced: bool,
    pub(crate) strategy: UpdateStrategy,
    pub(crate) has_finalizer: bool,
    pub(crate) is_cleanup_job: bool,
}

impl OwnedType {
    /// One that lives in a namespace.
    pub fn namespaced<T>() -> Self
    where
        T: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Self::dynamic(ApiResource::erase::<T>(&()), &Scope::Namespaced)
    }

    /// One that lives in no namespace. A parent that lives in one cannot be its owner as the garbage
    /// collector understands it: such a child is told by its labels, and the parent gets a finalizer so that
    /// the child goes with it.
    pub fn cluster_scoped<T>() -> Self
    where
        T: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Self::dynamic(ApiResource::erase::<T>(&()), &Scope::Cluster)
    }

    /// One that has no Rust type.
    pub fn dynamic(resource: ApiResource, scope: &Scope) -> Self {
        Self {
            resource,
            is_namespaced: *scope == Scope::Namespaced,
            strategy: UpdateStrategy::default(),
            has_finalizer: false,
            is_cleanup_job: false,
        }
    }

    /// What happens to one that is not as it is desired.
    #[must_use]
    pub fn update_strategy(mut self, strategy: UpdateStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Keeps a child, once somebody deletes it, until its owner lets it go: for what cannot be made again
    /// without a loss. Both the child and its owner get the owner's finalizer.
    #[must_use]
    pub fn with_finalizer(mut self) -> Self {
        self.has_finalizer = true;
        self
    }

    /// One that does what has to be done before its owner goes, such as a Job: it may be asked for while the owner
    /// is being deleted, and goes just before the owner does. The garbage collector is not told whose it is, since
    /// it would take it away in the middle of its work; its labels tell that, and the owner gets a finalizer.
    #[must_use]
    pub fn cleanup_job(mut self) -> Self {
        self.is_cleanup_job = true;
        self
    }

    /// What the loop may have to do with them, as an RBAC rule.
    pub fn rbac_rule(&self) -> Value {
        json!({
            "apiGroups": [self.resource.group],
            "resources": [self.resource.plural],
            "verbs": ["create", "delete", "get", "list", "patch", "watch"],
        })
    }

    /// The type itself.
    pub fn api_resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Whether its objects live in namespaces.
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
