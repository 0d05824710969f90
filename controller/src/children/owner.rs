//! Ownership: labels, owner references and the right to modify a child.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use crate::children::{CONTROLLER_LABEL, OWNER_LABEL, OwnedType};

/// Owner of children.
pub(crate) struct Owner<'a> {
    pub(crate) resource: &'a ApiResource,
    pub(crate) controller: &'a str,
    /// Finalizer of the kind, for finalizer-protected children.
    pub(crate) finalizer: Option<&'a str>,
    /// None if the owner is cluster-scoped.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

impl Owner<'_> {
    /// Returns true if the child has an owner reference: an owner must be in the namespace of its child, or
    /// cluster-scoped. Children for cleanup have none.
    pub(crate) fn can_reference(&self, type_: &OwnedType) -> bool {
        (self.namespace.is_none() || type_.is_namespaced) && !type_.is_cleanup_job()
    }

    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Returns true if an object belongs to this owner: it has it as its controller, or it has no controller but
    /// the owner's label. An object in another namespace is a copy.
    pub(crate) fn owns(&self, type_: &OwnedType, child: &DynamicObject) -> bool {
        let is_in_place = !type_.is_namespaced
            || self.namespace.is_none()
            || self.namespace == child.metadata.namespace.as_deref();
        let is_ours = match controller_of(child) {
            Some(controller) => controller.uid == self.uid,
            None => label(child, OWNER_LABEL) == Some(self.uid),
        };
        is_in_place && is_ours
    }

    /// Returns true if an object may be deleted when it is not desired: it has the owner's label, and also the
    /// owner reference where the type has one.
    pub(crate) fn may_delete(&self, type_: &OwnedType, child: &DynamicObject) -> bool {
        let is_controlled = controller_of(child).is_some_and(|it| it.uid == self.uid);
        self.owns(type_, child)
            && label(child, OWNER_LABEL) == Some(self.uid)
            && (is_controlled || !self.can_reference(type_))
    }

    /// Returns true if an object was created by this controller and then orphaned, as by `--cascade=orphan`.
    pub(crate) fn may_adopt(&self, type_: &OwnedType, child: &DynamicObject) -> bool {
        self.can_reference(type_)
            && label(child, CONTROLLER_LABEL) == Some(self.controller)
            && controller_of(child).is_none()
            && child.metadata.deletion_timestamp.is_none()
    }

    /// Returns true if an object is about to be deleted: its deletion has begun, or this controller created it for
    /// an object of the same name that no longer exists. Without the labels that show this, it may belong to any
    /// controller.
    pub(crate) fn will_be_garbage_collected(&self, child: &DynamicObject) -> bool {
        let is_predecessors = controller_of(child).is_some_and(|controller| {
            label(child, CONTROLLER_LABEL) == Some(self.controller)
                && label(child, OWNER_LABEL) == Some(&controller.uid)
                && controller.name == self.name
                && is_of_kind(controller, self.resource)
                && controller.uid != self.uid
        });
        is_predecessors || child.metadata.deletion_timestamp.is_some()
    }
}

pub(crate) fn label<'a>(object: &'a DynamicObject, name: &str) -> Option<&'a str> {
    let labels = object.metadata.labels.as_ref()?;
    labels.get(name).map(String::as_str)
}

/// Returns true if an owner reference is to an object of this kind, in any version. Another program in the cluster may have a
/// kind of the same name in another group, and so the same label on its children.
pub(crate) fn is_of_kind(reference: &OwnerReference, resource: &ApiResource) -> bool {
    let group = |api_version: &str| {
        let group = api_version.split_once('/');
        group.map(|(group, _)| group.to_owned())
    };
    reference.kind == resource.kind && group(&reference.api_version) == group(&resource.api_version)
}

/// Returns the owner reference of the object's controller.
pub(crate) fn controller_of(object: &DynamicObject) -> Option<&OwnerReference> {
    let mut references = object.metadata.owner_references.iter().flatten();
    references.find(|reference| reference.controller == Some(true))
}
