//! The step of an operator that only says what is to be.

use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};
use shared_validation::ValidatedResource;

use crate::children::OwnedType;
use crate::reconcile::{
    FinalizeOutcome, FinalizeRequest, Readiness, ReconcileError, ReconcileOutput, Reconciler,
};
use crate::request::SyncRequest;
use crate::status::OF_THE_RUNTIME;
use crate::watch::Watch;

/// How long all that was said to be is left unseen, when no watch tells of a change.
const RESYNC: Duration = Duration::from_hours(10);

/// Says what is to be, from what there is. Any function of this shape is one.
///
/// # Assumptions
///
/// The answer depends on the request alone: asked again, it is the same. What cannot be, such as a password,
/// is taken from the child that has it, and made only where there is none.
pub trait SyncHandler<K>: Send + Sync + 'static {
    /// What the object's children and its status are to be. With an error, no child is changed.
    fn sync(&self, request: &SyncRequest<'_, K>) -> Result<SyncResponse, ReconcileError>;

    /// What else has to happen before an object goes that is being deleted, besides its children going. It
    /// is called for objects that carry the finalizer, until it says [`Finalized::Gone`].
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

/// What is to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncResponse {
    status: Option<Map<String, Value>>,
    children: Vec<Value>,
    readiness: Option<Readiness>,
    requeue_after: Option<Duration>,
    failure: Option<ReconcileError>,
}

impl SyncResponse {
    /// No children, and a status that is left as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// The object's own status fields, in place of those that it has. A null leaves them as they are;
    /// conditions and `observedGeneration` are the runtime's to write and are passed over.
    ///
    /// # Errors
    ///
    /// It is neither null nor an object.
    pub fn status(mut self, status: &impl Serialize) -> Result<Self, ReconcileError> {
        self.status = match json("the status", status)? {
            Value::Null => None,
            Value::Object(fields) => Some(fields),
            other => {
                let message = format!("the status is to be an object or null, and is {other}");
                return Err(serialization_error(message));
            }
        };
        Ok(self)
    }

    /// One more child: JSON, or any type that becomes it. Only what is said of it is looked after; a child
    /// of which only the name is said stays as it is.
    pub fn child(mut self, child: &impl Serialize) -> Result<Self, ReconcileError> {
        self.children.push(json("a child", child)?);
        Ok(self)
    }

    /// Whether the object can be used. Without it, it can be once its children are as desired and rolled
    /// out.
    #[must_use]
    pub fn readiness(mut self, readiness: Readiness) -> Self {
        self.readiness = Some(readiness);
        self
    }

    /// When to look again though no watch tells of a change.
    #[must_use]
    pub fn requeue_after(mut self, time: Duration) -> Self {
        self.requeue_after = Some(time);
        self
    }

    /// Leaves the children as they are, for this reason, and writes the status all the same.
    #[must_use]
    pub fn failed(mut self, error: ReconcileError) -> Self {
        self.failure = Some(error);
        self
    }

    fn into_output<K>(self, request: &SyncRequest<'_, K>) -> ReconcileOutput {
        ReconcileOutput {
            status: replacing_fields(self.status, &request.raw_parent()["status"]),
            readiness: self.readiness,
            requeue_after: self.requeue_after.unwrap_or(RESYNC),
            children: self.children,
        }
    }
}

/// The changes that put fields in place of those that a status has.
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
    serde_json::to_value(value)
        .map_err(|error| serialization_error(format!("{what} is no JSON: {error}")))
}

fn serialization_error(message: String) -> ReconcileError {
    ReconcileError::Permanent {
        reason: "ResponseUnusable",
        message,
    }
}

/// A handler as a step of the cycle.
pub struct SyncReconciler<K, H> {
    handler: H,
    children: Vec<OwnedType>,
    watches: Vec<Watch>,
    finalizer: Option<&'static str>,
    kind: PhantomData<fn() -> K>,
}

impl<K: ValidatedResource, H: SyncHandler<K>> SyncReconciler<K, H> {
    /// One that makes no children.
    pub fn new(handler: H) -> Self {
        Self {
            handler,
            children: Vec::new(),
            watches: Vec::new(),
            finalizer: None,
            kind: PhantomData,
        }
    }

    /// Types of children that the handler may ask for.
    #[must_use]
    pub fn owns(mut self, types: impl IntoIterator<Item = OwnedType>) -> Self {
        self.children.extend(types);
        self
    }

    /// Watches on what the objects depend on.
    #[must_use]
    pub fn watches_all(mut self, watches: impl IntoIterator<Item = Watch>) -> Self {
        self.watches.extend(watches);
        self
    }

    /// Keeps objects that are being deleted until the handler's `finalize` says that they may go.
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
        let mut response = self.handler.sync(request)?;
        let failure = response.failure.take();
        let progress = response.into_output(request);
        failure.map_or(Ok(progress.clone()), |error| {
            Err(ReconcileError::Told {
                status: progress.status,
                error: Box::new(error),
            })
        })
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

    use super::*;

    #[test]
    fn a_status_takes_the_place_of_the_one_before_and_null_leaves_it() {
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
}
