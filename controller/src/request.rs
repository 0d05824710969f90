//! What a step gets to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::Resource;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::children::{ChildMap, pending_reason};
use crate::reconcile::ReconcileError;
use crate::related::RelatedObjects;

/// One object with its defaults filled, and its children as they are.
#[derive(Clone, Copy, Debug)]
pub struct SyncRequest<'a, K> {
    pub(crate) parent: &'a K,
    pub(crate) raw: &'a Value,
    pub(crate) children: Children<'a>,
    pub(crate) related: RelatedObjects<'a>,
}

impl<'a, K> SyncRequest<'a, K> {
    /// The object.
    pub fn parent(&self) -> &'a K {
        self.parent
    }

    /// The object with all that its Rust type does not know.
    pub fn raw_parent(&self) -> &'a Value {
        self.raw
    }

    /// What it depends on, as the operator's watches have brought it.
    pub fn related(&self) -> RelatedObjects<'a> {
        self.related
    }

    /// Its children as they are.
    pub fn children(&self) -> Children<'a> {
        self.children
    }
}

/// The children of one object, as the watches have brought them. Who looks at them is asked again once they have
/// been written.
#[derive(Clone, Copy, Debug)]
pub struct Children<'a> {
    pub(crate) children: &'a ChildMap,
    pub(crate) is_looked_at: &'a AtomicBool,
}

impl Default for Children<'_> {
    /// No children.
    fn default() -> Self {
        static NONE: ChildMap = ChildMap::new();
        static LOOKED_AT: AtomicBool = AtomicBool::new(false);
        Self {
            children: &NONE,
            is_looked_at: &LOOKED_AT,
        }
    }
}

impl<'a> Children<'a> {
    /// All of them, whatever their type.
    pub fn iter(&self) -> impl Iterator<Item = &'a DynamicObject> + use<'a> {
        self.is_looked_at.store(true, Ordering::Relaxed);
        self.children.values().map(Arc::as_ref)
    }

    /// The one of a type and a name, of an owner that lives in a namespace. Else see
    /// [`Observation::get_in`].
    ///
    /// # Errors
    ///
    /// It is there and cannot be read as its type.
    pub fn get<T>(&self, name: &str) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.read(None, name)
    }

    /// The same, in a namespace: for an owner that lives in none.
    ///
    /// # Errors
    ///
    /// As [`Observation::get`].
    pub fn get_namespaced<T>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.read(Some(namespace), name)
    }

    fn read<T>(self, namespace: Option<&str>, name: &str) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let (api_version, kind) = (T::api_version(&()), T::kind(&()));
        let Some(child) = self.find(&api_version, &kind, namespace, name) else {
            return Ok(None);
        };
        let read = serde_json::to_value(child).and_then(serde_json::from_value);
        read.map(Some).map_err(|error| ReconcileError::Permanent {
            reason: "ChildUnreadable",
            message: format!("the child {kind} '{name}' cannot be read: {error}"),
        })
    }

    /// What a desired child waits for before it is as good as desired: to be made, to be rolled out, or
    /// whatever its own status tells.
    pub fn pending_reason(&self, desired: &Value) -> Option<String> {
        let of = |pointer| {
            desired
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (kind, name) = (of("/kind"), of("/metadata/name"));
        let namespace = desired
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        let why = match self.find(of("/apiVersion"), kind, namespace, name) {
            Some(child) => pending_reason(child)?,
            None => "is being made".to_owned(),
        };
        Some(format!("{kind} '{name}' {why}"))
    }

    fn find(
        self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&'a DynamicObject> {
        self.iter().find(|child| {
            child.metadata.name.as_deref() == Some(name)
                && (namespace.is_none() || child.metadata.namespace.as_deref() == namespace)
                && child
                    .types
                    .as_ref()
                    .is_some_and(|types| types.api_version == api_version && types.kind == kind)
        })
    }
}
