//! The interface that an operator author implements.

use std::time::Duration;

use async_trait::async_trait;
use lockstep_shared_validation::{
    LastValidated, ValidatedResource, ValidationRequest, ValidationResult,
};
use serde_json::{Map, Value};

use crate::api::error::ReconcileError;
use crate::api::read_object::ReadObject;
use crate::api::request::{Children, SyncRequest};
use crate::cache::related::RelatedObjects;
use crate::children::OwnedType;
use crate::watch::dependency::Watch;

/// Reconciler of one kind: the two steps that an operator author writes.
///
/// # Guarantees
///
/// At most one step runs for an object at a time. [`reconcile`](Reconciler::reconcile) is called only for a valid
/// object, and only once the object has the finalizer.
///
/// # Assumptions
///
/// Every call may be the first, may repeat the previous one and may be interrupted anywhere. A step therefore
/// compares the desired with the current state and does not depend on the event that triggered it.
///
/// ```
/// use std::time::Duration;
///
/// use async_trait::async_trait;
/// use lockstep_controller::{
///     FinalizeOutcome, FinalizeRequest, ReconcileError, ReconcileOutput, Reconciler, SyncRequest,
/// };
/// # use serde_json::{Value, json};
/// # use lockstep_shared_validation::ValidatedResource;
/// # #[derive(serde::Deserialize)]
/// # struct Bucket { spec: Spec }
/// # #[derive(serde::Deserialize)]
/// # struct Spec { region: String }
/// # impl ValidatedResource for Bucket {
/// #     const GROUP: &'static str = "example.com";
/// #     const VERSION: &'static str = "v1";
/// #     const KIND: &'static str = "Bucket";
/// #     fn crd() -> Value { json!({}) }
/// #     fn example() -> Value { json!({"spec": {"region": "eu-central-1"}}) }
/// # }
/// # struct Storage;
/// # impl Storage {
/// #     async fn create_if_missing(&self, _: &str) -> Result<(), ReconcileError> { Ok(()) }
/// #     async fn delete(&self, _: &Value) -> Result<bool, ReconcileError> { Ok(true) }
/// # }
///
/// /// Creates a bucket for each object.
/// struct Buckets {
///     storage: Storage,
/// }
///
/// #[async_trait]
/// impl Reconciler for Buckets {
///     type Kind = Bucket;
///
///     fn finalizer(&self) -> Option<&'static str> {
///         Some("example.com/bucket")
///     }
///
///     async fn reconcile(
///         &self,
///         request: &SyncRequest<'_, Bucket>,
///     ) -> Result<ReconcileOutput, ReconcileError> {
///         self.storage.create_if_missing(&request.parent().spec.region).await?;
///         Ok(ReconcileOutput {
///             requeue_after: Duration::from_mins(10),
///             ..ReconcileOutput::default()
///         })
///     }
///
///     async fn finalize(
///         &self,
///         deleted: &FinalizeRequest<'_>,
///     ) -> Result<FinalizeOutcome, ReconcileError> {
///         let is_gone = self.storage.delete(deleted.object).await?;
///         Ok(if is_gone {
///             FinalizeOutcome::Done
///         } else {
///             FinalizeOutcome::Waiting(ReconcileOutput {
///                 requeue_after: Duration::from_secs(30),
///                 ..ReconcileOutput::default()
///             })
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// Kind of the reconciled objects, with defaults filled in.
    type Kind: ValidatedResource;

    /// Returns the finalizer that keeps an object until its external resources are removed. A finalizer that the
    /// children need is added without being declared here.
    fn finalizer(&self) -> Option<&'static str> {
        None
    }

    /// Returns the types of children that the operator creates.
    fn owns(&self) -> Vec<OwnedType> {
        Vec::new()
    }

    /// Returns the watches on objects that the reconciled objects depend on.
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    /// Returns the permissions that the operator needs beyond its own kind, as RBAC rules.
    fn rbac_rules(&self) -> Vec<Value> {
        let children = self.owns();
        let children = children.iter().map(OwnedType::rbac_rule);
        children
            .chain(self.watches().iter().map(Watch::rbac_rule))
            .collect()
    }

    /// Returns status fields that identify what the object manages outside the cluster: names, and the account or
    /// region in which these are to be found. They are written before [`reconcile`](Reconciler::reconcile) is first
    /// called, so that what it creates can be found again even if this process does not survive the call.
    ///
    /// # Errors
    ///
    /// The fields are unknown, or differ from those in the status: `reconcile` is not called, and the status
    /// fields do not change.
    async fn status_identity(
        &self,
        _request: &SyncRequest<'_, Self::Kind>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        Ok(Map::new())
    }

    /// Returns status fields that are written before the finalizer is added, and at no other time: as long as they are
    /// there, the status has not been erased since nothing had been created outside the cluster. An object without
    /// them may have had an earlier status, which a backup or a user has not kept.
    fn initial_status(&self, _object: &Value) -> Map<String, Value> {
        Map::new()
    }

    /// Returns what the rules of the kind receive as [others](lockstep_shared_validation::RuleContext::related):
    /// information about other objects, which only the controller has. If it has changed, the object is validated
    /// again. Null passes nothing.
    ///
    /// # Errors
    ///
    /// The information cannot be computed: the object is neither validated nor reconciled.
    fn related_for_validation(
        &self,
        _object: &Value,
        _related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        Ok(Value::Null)
    }

    /// Returns true if the status already describes the object in its current state, among the other objects and
    /// under the current policy, and nothing is left to report; a fingerprint of what was validated can decide
    /// this. The object is then not validated again, not even after a restart.
    fn is_up_to_date(&self, _request: &ValidationRequest<'_>) -> bool {
        false
    }

    /// Returns status fields that describe the validation result, in addition to the condition `Valid`; a null
    /// removes a field. They are written for invalid objects, too, for which no other step is called.
    fn on_validated(
        &self,
        _request: &ValidationRequest<'_>,
        _result: &ValidationResult,
    ) -> Map<String, Value> {
        Map::new()
    }

    /// Returns conditions of the operator's own that follow from an error, in whichever step it occurred. A condition that
    /// the step has set itself does not change.
    fn conditions_on_error(&self, _error: &ReconcileError) -> Vec<OperatorCondition> {
        Vec::new()
    }

    /// Observes what an invalid object manages, and changes nothing: the object is suspended, and may not even deserialize
    /// as its kind. Of the output, the status, `Ready`, the conditions, the Events and the time of the next look are used; without
    /// `readiness`, the condition `Ready` does not change. Default: `None`, the object is not ready.
    async fn observe_suspended(
        &self,
        _suspended: &SuspendedRequest<'_>,
    ) -> Option<ReconcileOutput> {
        None
    }

    /// Brings the current state to the desired state and reports the progress. Never writes the spec.
    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Self::Kind>,
    ) -> Result<ReconcileOutput, ReconcileError>;

    /// Removes the external resources of the object; the runtime removes its children. Called until it returns
    /// [`FinalizeOutcome::Done`] or [`FinalizeOutcome::Retained`].
    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError>;

    /// Returns what [`finalize`](Reconciler::finalize) would do to the resources outside the cluster, for users who
    /// are about to delete objects. Only the object is known: no other system is called, and the request has no
    /// children. Default: nothing is outside the cluster.
    fn deletion_effect(_deleted: &FinalizeRequest<'_>) -> Option<DeletionEffect>
    where
        Self: Sized,
    {
        None
    }

    /// Forgets what is kept in memory of an object, such as its metrics: it was deleted, or another replica reconciles it from
    /// now on.
    fn forget(&self, _uid: &str) {}
}

/// Effect of the deletion of an object on the resources outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionEffect {
    /// Clause for people, such as "the instance is deleted with all its data".
    pub description: String,
    /// If true, the deletion does not end until a user changes the object. The description says how.
    pub is_blocked: bool,
}

/// Object that is being deleted. It may be invalid, or even fail to deserialize as its kind.
#[derive(Clone, Copy, Debug)]
pub struct FinalizeRequest<'a> {
    /// The object as stored.
    pub object: &'a Value,
    /// Last validated values of the object, if they are known.
    pub last_validated: Option<&'a LastValidated>,
    /// If true, the object violates no rule of its kind.
    pub is_valid: bool,
    /// Children of the object in their current state.
    pub children: Children<'a>,
    /// Related objects, as cached from the operator's watches.
    pub related: RelatedObjects<'a>,
}

/// Object that is suspended because it is invalid.
#[derive(Clone, Copy, Debug)]
pub struct SuspendedRequest<'a> {
    /// The object as stored.
    pub object: &'a Value,
    /// Last validated values of the object, if they are known.
    pub last_validated: Option<&'a LastValidated>,
    /// Related objects, as cached from the operator's watches.
    pub related: RelatedObjects<'a>,
}

/// Time after which an object is reconciled again if no watch reports a change.
pub(crate) const RESYNC_PERIOD: Duration = Duration::from_hours(10);

/// Result of a reconcile step.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::{OperatorEvent, ReconcileOutput, Readiness};
/// use serde_json::{Map, json};
///
/// let output = ReconcileOutput {
///     status: Map::from_iter([("queueId".to_owned(), json!("q-17"))]),
///     readiness: Some(Readiness {
///         ready: false,
///         reason: "Creating",
///         message: "the queue is being created".to_owned(),
///     }),
///     requeue_after: Duration::from_secs(10),
///     events: vec![OperatorEvent {
///         is_warning: false,
///         reason: "Created",
///         note: "created the queue q-17".to_owned(),
///     }],
///     ..ReconcileOutput::default()
/// };
/// assert!(output.children.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReconcileOutput {
    /// The operator's own status fields. A null removes a field; a field that is not listed does not change.
    pub status: Map<String, Value>,
    /// The `Ready` condition. If unset, the object is ready once all children are up to date and rolled out.
    pub readiness: Option<Readiness>,
    /// Time after which the object is reconciled again if nothing changes in the cluster. Default: 10 hours.
    pub requeue_after: Duration,
    /// Desired children; a child that is not listed is deleted. While the object is being deleted, only children
    /// of types that are [for cleanup](OwnedType::cleanup_job) may be listed.
    pub children: Vec<Value>,
    /// If true, the output depends on the children in the request: if children are then written, the object is
    /// reconciled again at once. If false, it is not, since the writes of a reconciliation trigger no other one.
    pub reads_children: bool,
    /// Objects that the step has read by their names from the API server. A change of one of them triggers the next
    /// reconciliation, so that none has to be polled. The operator needs the permissions `list` and `watch` on them.
    pub reads: Vec<ReadObject>,
    /// Conditions of the operator's own, which are written with the status. One that is not listed does not change.
    pub conditions: Vec<OperatorCondition>,
    /// Events to publish, in addition to those of the runtime.
    pub events: Vec<OperatorEvent>,
    /// Part that makes no progress until a user changes something, although the object may be ready for use: the condition
    /// `Stalled`. It is used in a reconcile step without an error.
    pub stalled: Option<Stalled>,
    /// Error that ended the step. If set, no child is changed, and of the other fields only the status, the conditions and
    /// the Events are used: they are written together with the error.
    pub error: Option<ReconcileError>,
}

/// Condition of the operator's own, such as `Synced`.
///
/// ```
/// use lockstep_controller::OperatorCondition;
///
/// let synced = OperatorCondition {
///     type_: "Synced",
///     is_true: false,
///     reason: "Throttled",
///     message: "the provider limits the rate of calls".to_owned(),
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCondition {
    /// Type of the condition, one CamelCase word.
    pub type_: &'static str,
    /// If true, the status of the condition is `True`, and otherwise `False`.
    pub is_true: bool,
    /// Reason for programs, one CamelCase word.
    pub reason: &'static str,
    /// Message for people.
    pub message: String,
}

/// Event that an operator publishes. A Warning with the same reason and note is counted, and not published again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorEvent {
    /// If true, the Event has the type `Warning`, and otherwise `Normal`. A `Normal` Event is published each time, so it is
    /// for what happens once.
    pub is_warning: bool,
    /// Reason for programs, one CamelCase word.
    pub reason: &'static str,
    /// Message for people, at most 1,024 bytes.
    pub note: String,
}

impl Default for ReconcileOutput {
    fn default() -> Self {
        Self {
            status: Map::new(),
            readiness: None,
            requeue_after: RESYNC_PERIOD,
            children: Vec::new(),
            reads_children: false,
            reads: Vec::new(),
            conditions: Vec::new(),
            events: Vec::new(),
            stalled: None,
            error: None,
        }
    }
}

impl ReconcileOutput {
    /// Returns the result of a step that has failed: the status fields are written together with the error.
    #[must_use]
    pub fn failed(status: Map<String, Value>, error: ReconcileError) -> Self {
        Self {
            status,
            error: Some(error),
            ..Self::default()
        }
    }
}

/// The `Ready` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// If true, the object is ready for use.
    pub ready: bool,
    /// Reason for programs, one CamelCase word.
    pub reason: &'static str,
    /// Message for people, one sentence.
    pub message: String,
}

/// The condition `Stalled` of an object that may be ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Reason for programs, one CamelCase word.
    pub reason: &'static str,
    /// Message for people, with what to do.
    pub message: String,
}

/// Result of a finalize step.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::{FinalizeOutcome, ReconcileOutput};
///
/// /// Returns the outcome of a cleanup, depending on the state that the other system reports.
/// fn outcome(state: &str) -> FinalizeOutcome {
///     match state {
///         "gone" => FinalizeOutcome::Done,
///         "kept" => FinalizeOutcome::Retained("the queue q-17".to_owned()),
///         _ => FinalizeOutcome::Waiting(ReconcileOutput {
///             requeue_after: Duration::from_secs(30),
///             ..ReconcileOutput::default()
///         }),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "one exists at a time, and a box would be in the way of every author"
)]
pub enum FinalizeOutcome {
    /// The external resources are confirmed to be gone: the finalizer is removed.
    Done,
    /// The external resources are kept on purpose: the finalizer is removed, and an Event reports what is left.
    Retained(String),
    /// Cleanup is still in progress: the children do the remaining work, or the resources disappear without
    /// further calls.
    Waiting(ReconcileOutput),
}
