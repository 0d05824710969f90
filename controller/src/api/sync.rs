//! Reconciler for operators that only return the desired state.

use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use lockstep_shared_validation::ValidatedResource;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::error::ReconcileError;
use crate::api::reconciler::{
    FinalizeOutcome, FinalizeRequest, RESYNC_PERIOD, Readiness, ReconcileOutput, Reconciler,
};
use crate::api::request::SyncRequest;
use crate::children::OwnedType;
use crate::status::patch::OF_THE_RUNTIME;
use crate::watch::dependency::Watch;

/// Computes the desired state from the current state, as the `sync` hook of Metacontroller does. Any function of
/// this shape is a handler.
///
/// # Assumptions
///
/// The response depends on the request alone: the same request gives the same response. A value for which this is
/// impossible, such as a generated password, is read from the child that has it and generated only if that child
/// does not exist.
pub trait SyncHandler<K>: Send + Sync + 'static {
    /// Returns the desired children and the desired status of the object. If it returns an error, no child is
    /// changed; [`SyncResponse::failed`] reports an error together with a status.
    fn sync(&self, request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError>;

    /// Does what is needed before an object is removed, in addition to the deletion of its children. Called for
    /// objects that have the finalizer, until it returns [`FinalizeOutcome::Done`] or [`FinalizeOutcome::Retained`].
    fn finalize(&self, _deleted: &FinalizeRequest<'_>) -> Result<FinalizeOutcome, ReconcileError> {
        Ok(FinalizeOutcome::Done)
    }
}

impl<K, F> SyncHandler<K> for F
where
    F: Fn(&SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> + Send + Sync + 'static,
{
    fn sync(&self, request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
        self(request)
    }
}

/// Desired state of one object.
///
/// ```
/// use lockstep_controller::{ReconcileError, SyncRequest, SyncResponse};
/// use serde_json::json;
///
/// /// Desires a ConfigMap with the name of the object.
/// fn sync<K>(request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
///     let object = request.raw_parent();
///     let config_map = json!({
///         "apiVersion": "v1",
///         "kind": "ConfigMap",
///         "metadata": {"name": object["metadata"]["name"]},
///         "data": {"text": object["spec"]["text"]},
///     });
///     SyncResponse::new()
///         .child(&config_map)?
///         .status(&json!({"configMap": object["metadata"]["name"]}))
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncResponse {
    status: Option<Map<String, Value>>,
    children: Vec<Value>,
    readiness: Option<Readiness>,
    requeue_after: Option<Duration>,
    reads_children: bool,
    error: Option<ReconcileError>,
}

impl SyncResponse {
    /// Returns a response without children that leaves the status unchanged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the operator's own status fields, which replace the existing ones. A null leaves them unchanged.
    /// Conditions and `observedGeneration` are written by the runtime and are ignored here.
    ///
    /// # Errors
    ///
    /// The status is neither null nor an object.
    pub fn status(mut self, status: &impl Serialize) -> Result<Self, ReconcileError> {
        self.status = match json("the status", status)? {
            Value::Null => None,
            Value::Object(fields) => Some(fields),
            other => {
                let message = format!("the status must be an object or null, but is {other}");
                return Err(serialization_error(message));
            }
        };
        Ok(self)
    }

    /// Adds a child: JSON, or any type that serializes to it. Only the fields that are given are managed; a child
    /// that gives only its name is left as it is.
    pub fn child(mut self, child: &impl Serialize) -> Result<Self, ReconcileError> {
        self.children.push(json("a child", child)?);
        Ok(self)
    }

    /// Sets the `Ready` condition. If unset, the object is ready once its children are up to date and rolled out.
    #[must_use]
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = Some(readiness);
        self
    }

    /// Declares that the response depends on the children in the request, such as a second child that is desired once
    /// the first one exists: if children are then written, the object is reconciled again at once.
    #[must_use]
    pub fn reads_children(mut self) -> Self {
        self.reads_children = true;
        self
    }

    /// Sets the time after which the object is reconciled again if no watch reports a change.
    #[must_use]
    pub fn requeue_after(mut self, time: Duration) -> Self {
        self.requeue_after = Some(time);
        self
    }

    /// Reports an error: the children are left unchanged, and the status is written together with the error.
    #[must_use]
    pub fn failed(mut self, error: ReconcileError) -> Self {
        self.error = Some(error);
        self
    }

    fn into_output<K>(self, request: &SyncRequest<'_, K>) -> ReconcileOutput {
        ReconcileOutput {
            status: replacing_fields(self.status, &request.raw_parent()["status"]),
            readiness: self.readiness,
            requeue_after: self.requeue_after.unwrap_or(RESYNC_PERIOD),
            children: self.children,
            reads_children: self.reads_children,
            error: self.error,
            // The step is pure.
            reads: Vec::new(),
            conditions: Vec::new(),
            events: Vec::new(),
            stalled: None,
        }
    }
}

/// Returns the changes that replace the operator's fields of a status.
fn replacing_fields(fields: Option<Map<String, Value>>, before: &Value) -> Map<String, Value> {
    let Some(mut fields) = fields else {
        return Map::new();
    };
    for name in before.as_object().into_iter().flat_map(Map::keys) {
        fields.entry(name.clone()).or_insert(Value::Null);
    }
    fields.retain(|name, _| !OF_THE_RUNTIME.contains(&name.as_str()));
    fields
}

fn json(what: &str, value: &impl Serialize) -> Result<Value, ReconcileError> {
    serde_json::to_value(value).map_err(|error| {
        serialization_error(format!("{what} cannot be serialized to JSON: {error}"))
    })
}

fn serialization_error(message: String) -> ReconcileError {
    ReconcileError::Permanent {
        reason: "InvalidSyncResponse",
        message,
    }
}

/// A [`SyncHandler`] as a [`Reconciler`].
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lockstep_controller::{
///     OwnedType, ReconcileError, Reconciler, SyncReconciler, SyncRequest, SyncResponse,
/// };
/// # use lockstep_shared_validation::ValidatedResource;
///
/// fn sync<K>(request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError> {
///     let name = &request.raw_parent()["metadata"]["name"];
///     SyncResponse::new().child(&serde_json::json!({
///         "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
///     }))
/// }
///
/// fn operator<K: ValidatedResource>() -> impl Reconciler<Kind = K> {
///     SyncReconciler::new(sync::<K>).owns([OwnedType::namespaced::<ConfigMap>()])
/// }
/// ```
pub struct SyncReconciler<K, H> {
    handler: H,
    children: Vec<OwnedType>,
    watches: Vec<Watch>,
    finalizer: Option<&'static str>,
    kind: PhantomData<fn() -> K>,
}

impl<K: ValidatedResource, H: SyncHandler<K>> SyncReconciler<K, H> {
    /// Returns a reconciler that creates no children.
    pub fn new(handler: H) -> Self {
        Self {
            handler,
            children: Vec::new(),
            watches: Vec::new(),
            finalizer: None,
            kind: PhantomData,
        }
    }

    /// Declares types of children that the handler may return.
    #[must_use]
    pub fn owns(mut self, types: impl IntoIterator<Item = OwnedType>) -> Self {
        self.children.extend(types);
        self
    }

    /// Adds watches on objects that the reconciled objects depend on.
    #[must_use]
    pub fn watches_all(mut self, watches: impl IntoIterator<Item = Watch>) -> Self {
        self.watches.extend(watches);
        self
    }

    /// Sets the finalizer that keeps an object until the handler's `finalize` has finished.
    #[must_use]
    pub fn finalizer(mut self, finalizer: &'static str) -> Self {
        self.finalizer = Some(finalizer);
        self
    }
}

#[async_trait]
impl<K: ValidatedResource, H: SyncHandler<K>> Reconciler for SyncReconciler<K, H> {
    type Kind = K;

    fn finalizer(&self) -> Option<&'static str> {
        self.finalizer
    }

    fn owns(&self) -> Vec<OwnedType> {
        self.children.clone()
    }

    fn watches(&self) -> Vec<Watch> {
        self.watches.clone()
    }

    async fn reconcile(
        &self,
        request: &SyncRequest<'_, K>,
    ) -> Result<ReconcileOutput, ReconcileError> {
        Ok(self.handler.sync(request)?.into_output(request))
    }

    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError> {
        self.handler.finalize(deleted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use lockstep_shared_validation::Policy;

    use super::*;
    use crate::api::request::Children;
    use crate::cache::related::RelatedObjects;

    #[test]
    fn a_status_replaces_the_previous_one_and_null_leaves_it_unchanged() {
        let before = json!({"phase": "old", "gone": 1, "conditions": [], "observedGeneration": 3});
        let status = json!({"phase": "new", "conditions": [{"type": "Mine"}]});
        let response = SyncResponse::new().status(&status).expect("a status");
        let changes = Value::Object(replacing_fields(response.status, &before));
        assert_eq!(changes, json!({"phase": "new", "gone": null}));
        let response = SyncResponse::new().status(&Value::Null).expect("a status");
        assert_eq!(replacing_fields(response.status, &before), Map::new());
        let error = SyncResponse::new().status(&json!([1])).expect_err("a list");
        assert!(error.to_string().contains("is [1]"), "{error}");
    }

    #[test]
    fn an_error_is_returned_together_with_the_status() {
        let error = ReconcileError::Transient {
            reason: "Unreachable",
            message: "no answer".to_owned(),
        };
        let status = json!({"phase": "waiting"});
        let response = SyncResponse::new().status(&status).expect("a status");
        let raw = json!({"status": {"phase": "ready"}});
        let request = SyncRequest {
            parent: &(),
            raw: &raw,
            children: Children::default(),
            related: RelatedObjects::default(),
            policy: &Policy::default(),
            is_requested: false,
        };
        let output = response.failed(error.clone()).into_output(&request);
        assert_eq!(output.error, Some(error));
        assert_eq!(Value::Object(output.status), status);
    }
}
