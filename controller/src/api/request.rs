//! Input of a reconcile step.

use std::sync::{Arc, LazyLock};

use kube::Resource;
use kube::api::DynamicObject;
use lockstep_shared_validation::Policy;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::error::ReconcileError;
use crate::cache::related::RelatedObjects;
use crate::children::{ChildMap, pending_reason};

/// One object with its defaults filled in, and its children in their current state.
///
/// ```
/// use lockstep_controller::SyncRequest;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Note {
///     text: String,
/// }
///
/// // A unit test makes one. In the controller, the runtime does.
/// let raw = json!({"text": "Hello!", "metadata": {"name": "a"}});
/// let note: Note = serde_json::from_value(raw.clone())?;
/// let request = SyncRequest::of(&note, &raw);
/// assert_eq!(request.parent().text, "Hello!");
/// assert_eq!(request.children().iter().count(), 0);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SyncRequest<'a, K> {
    pub(crate) parent: &'a K,
    pub(crate) raw: &'a Value,
    pub(crate) children: Children<'a>,
    pub(crate) related: RelatedObjects<'a>,
    pub(crate) policy: &'a Policy,
    pub(crate) is_requested: bool,
}

impl<'a, K> SyncRequest<'a, K> {
    /// Returns the request for an object without children and related objects, with the default policy: for tests that call
    /// a reconciler without an API server. `raw` is the same object as JSON.
    pub fn of(parent: &'a K, raw: &'a Value) -> Self {
        static DEFAULT: LazyLock<Policy> = LazyLock::new(Policy::default);
        Self {
            parent,
            raw,
            children: Children::default(),
            related: RelatedObjects::default(),
            policy: &DEFAULT,
            is_requested: false,
        }
    }

    /// Returns the same request, as if a user had requested the reconciliation: for tests.
    #[must_use]
    pub fn requested_by_user(self) -> Self {
        Self {
            is_requested: true,
            ..self
        }
    }

    /// Returns the same request with another policy: for tests.
    #[must_use]
    pub fn with_policy(self, policy: &'a Policy) -> Self {
        Self { policy, ..self }
    }

    /// Returns the object.
    pub fn parent(&self) -> &'a K {
        self.parent
    }

    /// Returns the object as JSON, including the fields that its Rust type does not have.
    pub fn raw_parent(&self) -> &'a Value {
        self.raw
    }

    /// Returns the related objects, as cached from the operator's watches.
    pub fn related(&self) -> RelatedObjects<'a> {
        self.related
    }

    /// Returns the policy with which the object was validated. All objects are reconciled when it changes.
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Returns true if a user has requested this reconciliation with the annotation `lockstep.dev/reconcile-requested-at`:
    /// what the operator remembers of other systems is to be read again, and what has failed is to be tried again.
    pub fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Returns the children in their current state. A step whose result depends on them says so in the result, see
    /// [`ReconcileOutput::reads_children`](crate::ReconcileOutput::reads_children).
    pub fn children(&self) -> Children<'a> {
        self.children
    }
}

/// Children of one object, as cached from the watches.
///
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use lockstep_controller::{ReconcileError, SyncRequest};
///
/// /// Returns true if the password exists already, so that none is generated.
/// fn has_password<K>(request: &SyncRequest<'_, K>) -> Result<bool, ReconcileError> {
///     let secret: Option<Secret> = request.children().get("password")?;
///     Ok(secret.is_some())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Children<'a> {
    pub(crate) children: &'a ChildMap,
}

impl Default for Children<'_> {
    /// Returns an observation without children.
    fn default() -> Self {
        static NONE: ChildMap = ChildMap::new();
        Self { children: &NONE }
    }
}

impl<'a> Children<'a> {
    /// Returns all children, whatever their type.
    pub fn iter(&self) -> impl Iterator<Item = &'a DynamicObject> + use<'a> {
        self.children.values().map(Arc::as_ref)
    }

    /// Returns the child of a type and name whose owner is in a namespace. For other owners see
    /// [`Children::get_namespaced`].
    ///
    /// # Errors
    ///
    /// The child exists and cannot be deserialized as its type.
    pub fn get<T>(&self, name: &str) -> Result<Option<T>, ReconcileError>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.read(None, name)
    }

    /// Returns the child of a type, namespace and name: for an owner that is cluster-scoped.
    ///
    /// # Errors
    ///
    /// As [`Children::get`].
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
            message: format!("the child {kind} '{name}' cannot be deserialized: {error}"),
        })
    }

    /// Returns why a desired child is not up to date yet: it does not exist yet, it is not rolled out, or its own
    /// status reports another reason.
    pub fn pending_reason(&self, desired: &Value) -> Option<String> {
        let metadata = &desired["metadata"];
        let api_version = desired["apiVersion"].as_str().unwrap_or_default();
        let kind = desired["kind"].as_str().unwrap_or_default();
        let name = metadata["name"].as_str().unwrap_or_default();
        let why = match self.find(api_version, kind, metadata["namespace"].as_str(), name) {
            Some(child) => pending_reason(child)?,
            None => "is being created".to_owned(),
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
