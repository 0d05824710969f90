//! Types of owned objects.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use kube::api::ApiResource;
use kube::discovery::Scope;
use serde_json::{Value, json};

/// Update strategy: what happens to a child that differs from the desired one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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

/// Purpose of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The owner consists of them.
    Part,
    /// They clean up before the owner is removed.
    CleanupJob,
    /// They do one piece of work. The owner is ready whatever their state is.
    Temporary,
}

type Namespaces = dyn Fn(&Value) -> Vec<String> + Send + Sync;

/// Function that returns the namespaces in which an owner has children of a type.
#[derive(Clone)]
pub(crate) struct NamespacesOf(pub(crate) Arc<Namespaces>);

impl fmt::Debug for NamespacesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamespacesOf")
    }
}

type Predicate = dyn Fn(&Value) -> bool + Send + Sync;

/// Function that returns true for some of the children of a type.
#[derive(Clone)]
struct SomeChildren(Arc<Predicate>);

impl fmt::Debug for SomeChildren {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SomeChildren")
    }
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
    purpose: Purpose,
    /// Children on which the readiness of the owner does not depend, besides those that are temporary.
    not_awaited: Option<SomeChildren>,
    /// Namespaces that are watched; all, if there is no function.
    pub(crate) namespaces_of: Option<NamespacesOf>,
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
            purpose: Purpose::Part,
            not_awaited: None,
            namespaces_of: None,
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
        self.purpose = Purpose::CleanupJob;
        self
    }

    /// Declares that the readiness of the owner does not depend on these children: for Pods that do one piece of work and
    /// are then no longer desired.
    #[must_use]
    pub fn temporary(mut self) -> Self {
        self.purpose = Purpose::Temporary;
        self
    }

    /// Declares that the readiness of the owner does not depend on those of these children for which a function returns
    /// true: for auxiliary objects without which the owner does its work, too.
    #[must_use]
    pub fn ignoring_readiness_of(
        mut self,
        is_auxiliary: impl Fn(&Value) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.not_awaited = Some(SomeChildren(Arc::new(is_auxiliary)));
        self
    }

    /// Watches these children only in the namespaces that a function returns for each owner, with a watch for each
    /// namespace: for Secrets, on which a controller should have permissions only where it needs them. Without this, the
    /// type is watched in all namespaces.
    ///
    /// As long as the controller may not watch such a namespace, the owners with children in it are validated, and their
    /// condition `Ready` says what is missing; other namespaces are not affected. A child in a namespace
    /// that the function no longer returns is deleted like any other that is not desired, unless the controller has
    /// restarted in between: it then no longer knows that child. Where the owner has a finalizer, these children are deleted before
    /// it is removed, and not left to the garbage collector of Kubernetes: what that leaves behind would never be found.
    ///
    /// ```
    /// use lockstep_controller::OwnedType;
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// let secrets = OwnedType::namespaced::<Secret>().watch_in(|owner| {
    ///     let namespace = owner["metadata"]["namespace"].as_str();
    ///     namespace.map(String::from).into_iter().collect()
    /// });
    /// assert!(secrets.is_namespaced());
    /// ```
    ///
    /// # Panics
    ///
    /// If the type is cluster-scoped.
    #[must_use]
    pub fn watch_in(
        mut self,
        namespaces_of: impl Fn(&Value) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let plural = &self.resource.plural;
        assert!(self.is_namespaced, "{plural} are in no namespace");
        self.namespaces_of = Some(NamespacesOf(Arc::new(namespaces_of)));
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

    pub(crate) fn is_cleanup_job(&self) -> bool {
        self.purpose == Purpose::CleanupJob
    }

    /// Returns true if the readiness of the owner depends on this child of the type.
    pub(crate) fn is_awaited(&self, child: &Value) -> bool {
        let ignored = self.not_awaited.as_ref();
        self.purpose != Purpose::Temporary && !ignored.is_some_and(|ignored| (ignored.0)(child))
    }

    pub(crate) fn is_same_type_as(&self, other: &Self) -> bool {
        self.resource.group == other.resource.group && self.resource.plural == other.resource.plural
    }

    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        self.resource.api_version == api_version && self.resource.kind == kind
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    #[test]
    fn the_readiness_depends_on_all_children_but_temporary_and_auxiliary_ones() {
        let named = |name: &str| json!({"metadata": {"name": name}});
        let part = OwnedType::namespaced::<Deployment>();
        assert!(part.is_awaited(&named("a")));
        let some = part
            .clone()
            .ignoring_readiness_of(|child| child["metadata"]["name"] == "b");
        let awaited = ["a", "b"].map(|name| some.is_awaited(&named(name)));
        assert_eq!(awaited, [true, false]);
        assert!(!part.temporary().is_awaited(&named("a")));
    }
}
