//! Whose children they are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::{CONTROLLER_LABEL, OWNER_LABEL, OwnedType};

/// The object that children are made for.
pub(crate) struct Owner<'a> {
    pub(crate) resource: &'a ApiResource,
    pub(crate) controller: &'a str,
    /// The finalizer of the kind, for children that are guarded.
    pub(crate) finalizer: Option<&'a str>,
    /// None for one that lives in no namespace.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

impl Owner<'_> {
    /// Whether the garbage collector knows of it: an owner is in the namespace of what it owns, or in none. It is
    /// not to know of what cleans up.
    pub(crate) fn can_reference(&self, type_: &OwnedType) -> bool {
        (self.namespace.is_none() || type_.is_namespaced) && !type_.is_cleanup_job
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

    /// Whether an object has been made for this owner: it is controlled by it or, controlled by nobody, carries
    /// its label. One in another namespace is a copy.
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

    /// Whether an object may be deleted when it is not desired: also the garbage collector would hold it for
    /// ours, where it can know of us.
    pub(crate) fn may_delete(&self, type_: &OwnedType, child: &DynamicObject) -> bool {
        let is_controlled = controller_of(child).is_some_and(|it| it.uid == self.uid);
        self.owns(type_, child)
            && label(child, OWNER_LABEL) == Some(self.uid)
            && (is_controlled || !self.can_reference(type_))
    }

    /// Whether an object has been made by this loop and was then left behind, as `--cascade=orphan` does.
    pub(crate) fn may_adopt(&self, type_: &OwnedType, child: &DynamicObject) -> bool {
        self.can_reference(type_)
            && label(child, CONTROLLER_LABEL) == Some(self.controller)
            && controller_of(child).is_none()
            && child.metadata.deletion_timestamp.is_none()
    }

    /// Whether an object is about to go: it is being deleted, or was made by this loop for one of our name that is
    /// gone. Without a label to know it by, it may be anybody's.
    pub(crate) fn will_be_garbage_collected(&self, child: &DynamicObject) -> bool {
        let is_predecessors = controller_of(child).is_some_and(|controller| {
            let group = |api_version: &str| {
                api_version
                    .split_once('/')
                    .map(|(group, _)| group.to_owned())
            };
            label(child, CONTROLLER_LABEL) == Some(self.controller)
                && label(child, OWNER_LABEL) == Some(&controller.uid)
                && controller.name == self.name
                && controller.kind == self.resource.kind
                && group(&controller.api_version) == group(&self.resource.api_version)
                && controller.uid != self.uid
        });
        is_predecessors || child.metadata.deletion_timestamp.is_some()
    }
}

pub(crate) fn label<'a>(object: &'a DynamicObject, name: &str) -> Option<&'a str> {
    let labels = object.metadata.labels.as_ref()?;
    labels.get(name).map(String::as_str)
}

/// What the garbage collector holds for the one that controls an object.
pub(crate) fn controller_of(object: &DynamicObject) -> Option<&OwnerReference> {
    let mut references = object.metadata.owner_references.iter().flatten();
    references.find(|reference| reference.controller == Some(true))
}
