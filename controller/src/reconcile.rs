//! What an operator's author writes.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use shared_validation::{
    FieldError, LastValidated, ValidatedResource, ValidationRequest, ValidationResult,
};

use crate::children::OwnedType;
use crate::related::RelatedObjects;
use crate::request::{Children, SyncRequest};
use crate::watch::Watch;

/// The operator's own two steps for one kind.
///
/// # Guarantees
///
/// Both steps are called for one object at a time, never for an object that breaks a rule, and
/// [`reconcile`](Reconcile::reconcile) only once the object carries the finalizer.
///
/// # Assumptions
///
/// Every call may be the first, may repeat the one before, and may be cut off anywhere: a step looks
/// at the world and never at why it was called.
#[async_trait]
pub trait Reconciler: Send + Sync + 'static {
    /// The kind, defaults filled.
    type Kind: ValidatedResource;

    /// The finalizer that keeps an object until what it stands for is gone. One that is needed for the sake
    /// of the children comes without asking.
    fn finalizer(&self) -> Option<&'static str> {
        None
    }

    /// The types of children that the operator makes.
    fn owns(&self) -> Vec<OwnedType> {
        Vec::new()
    }

    /// What its objects depend on.
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    /// What the operator may do beyond its own kind, as RBAC rules.
    fn rbac_rules(&self) -> Vec<Value> {
        let children = self.owns();
        let children = children.iter().map(OwnedType::rbac_rule);
        children
            .chain(self.watches().iter().map(Watch::rbac_rule))
            .collect()
    }

    /// Returns status fields that identify what the object manages outside the cluster: names, and the account or
    /// region in which these are to be found. They are written before [`reconcile`](Reconcile::reconcile) is first
    /// called, so that what it makes can be found again even if this process does not survive the call.
    ///
    /// # Errors
    ///
    /// They are not known, or not those that the status has: `reconcile` is not called and the status fields stay as
    /// they are.
    async fn status_identity(
        &self,
        _request: &SyncRequest<'_, Self::Kind>,
    ) -> Result<Map<String, Value>, ReconcileError> {
        Ok(Map::new())
    }

    /// What the rules of the kind are told of [others](shared_validation::Subject::others), which only the loop
    /// knows; they are asked again where it has changed. Null tells nothing.
    ///
    /// # Errors
    ///
    /// It cannot be told: the object is neither judged nor reconciled.
    fn related_for_validation(
        &self,
        _object: &Value,
        _related: RelatedObjects<'_>,
    ) -> Result<Value, ReconcileError> {
        Ok(Value::Null)
    }

    /// Whether the status of an object tells of it as it is, among others and under the policy, and all that there
    /// is to tell: by a fingerprint of what was judged, say. Then it is not judged again, after a restart either.
    fn is_up_to_date(&self, _candidate: &ValidationRequest<'_>) -> bool {
        false
    }

    /// Status fields that tell of the verdict on an object, beside the condition `Valid`; a null removes one. They
    /// are written of objects that break a rule, too, of which no other step is asked.
    fn on_validated(
        &self,
        _candidate: &ValidationRequest<'_>,
        _verdict: &ValidationResult,
    ) -> Map<String, Value> {
        Map::new()
    }

    /// Brings the world to what the object says, and reports how far it got. Never writes the spec.
    async fn reconcile(
        &self,
        request: &SyncRequest<'_, Self::Kind>,
    ) -> Result<ReconcileOutput, ReconcileError>;

    /// Removes what the object stands for, besides its children. Called until it says [`Finalized::Gone`].
    async fn finalize(
        &self,
        deleted: &FinalizeRequest<'_>,
    ) -> Result<FinalizeOutcome, ReconcileError>;
}

/// An object that is being deleted. It may be invalid, even unreadable as its kind.
#[derive(Clone, Copy, Debug)]
pub struct FinalizeRequest<'a> {
    /// The object as stored.
    pub object: &'a Value,
    /// What was last accepted of it, if that is known.
    pub last_validated: Option<&'a LastValidated>,
    /// Whether the object keeps every rule of its kind.
    pub is_valid: bool,
    /// Its children as they are.
    pub children: Children<'a>,
}

/// How far a reconcile step got.
#[derive(Clone, Debug, PartialEq)]
pub struct ReconcileOutput {
    /// The operator's own status fields. A null removes a field; one that is not named stays.
    pub status: Map<String, Value>,
    /// Whether what the object stands for can be used. Without it, it can be once all children are as they
    /// are to be and rolled out.
    pub readiness: Option<Readiness>,
    /// When to look again though nothing has changed in the cluster.
    pub requeue_after: Duration,
    /// What the children are to be; those that are not named are deleted. While the object is being deleted, only
    /// those of types that are [for cleanup](ChildType::for_cleanup) are meant.
    pub children: Vec<Value>,
}

/// The `Ready` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it can be used.
    pub ready: bool,
    /// One CamelCase word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// How far a finalize step got.
#[derive(Clone, Debug, PartialEq)]
pub enum FinalizeOutcome {
    /// Confirmed gone: the object may go.
    Done,
    /// Meant to stay: the object may go, and an Event says what is left behind.
    Retained(String),
    /// Not gone yet; its children do what is left to do, or it goes by itself.
    Waiting(ReconcileOutput),
}

/// Why a step did not get through.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReconcileError {
    /// Something that the object names breaks a rule: treated as an invalid object, and looked at
    /// again after a backoff, since the change may come from elsewhere.
    #[error("{}", shared_validation::aggregate(.0))]
    Invalid(Vec<FieldError>),
    /// Trying again without a change cannot help.
    #[error("{message}")]
    Permanent {
        /// One CamelCase word for programs.
        reason: &'static str,
        /// A sentence for people: what is wrong and what to do.
        message: String,
    },
    /// An error that the object's own status fields tell of as well.
    #[error("{error}")]
    Told {
        /// As in [`Progress`].
        status: Map<String, Value>,
        /// What has gone wrong.
        error: Box<ReconcileError>,
    },
    /// An error whose cause may go away outside the cluster, where no watch sees it.
    #[error("{error}")]
    RequeueAfter {
        /// The time until the object is reconciled again.
        after: Duration,
        /// The error that is reported.
        error: Box<ReconcileError>,
    },
    /// Trying again may help.
    #[error("{message}")]
    Transient {
        /// One CamelCase word for programs.
        reason: &'static str,
        /// A sentence for people.
        message: String,
    },
}
