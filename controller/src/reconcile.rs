//! The steps of a reconciliation, the same for every kind.
//!
//! fetch → being deleted? finalize → default → validate → initialize → reconcile → children → status → requeue

pub(crate) mod action;
mod finalize;
pub(crate) mod finalizer;
mod update;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use json_patch::PatchOperation;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde_json::Value;
use shared_validation::{LastValidated, ValidationResult, Violation, aggregate};

use crate::api::error::ReconcileError;
use crate::api::reconciler::{Readiness, ReconcileOutput, Reconciler};
use crate::api::request::Children;
use crate::cache::related::{RelatedCache, RelatedObjects};
use crate::children::{AppliedChanges, ChildMap, ChildWriter, Owner};
use crate::controller::context::Context;
use crate::events::recorder;
use crate::metrics::ViolationLabels;
use crate::queue::backoff::LONGEST_WHILE_DELETING;
use crate::reconcile::action::Action;
use crate::reconcile::validate::Stored;
use crate::status::patch::{Health, READY, Status};
use crate::status::paused;

const VALID: &str = "Valid";
const PAUSED: &str = "Paused";

/// Reason of every Event that reports a failure; the note starts with the specific reason.
const PROCESSING_ERROR: &str = "ProcessingError";

/// Phase of an object, which decides the steps of its reconciliation.
enum Phase {
    /// A user has paused the object.
    Paused,
    /// The object is being deleted.
    Deleting,
    Active,
}

impl Phase {
    fn of(object: &DynamicObject) -> Self {
        if paused::is_paused(object) {
            Self::Paused
        } else if object.metadata.deletion_timestamp.is_some() {
            Self::Deleting
        } else {
            Self::Active
        }
    }
}

/// Reconciles an object once. Returns only errors of the API server; all other errors are reported in the status.
pub(crate) async fn reconcile<R: Reconciler>(
    context: &Context<R>,
    stored: &DynamicObject,
    related: &[RelatedCache],
) -> Result<Action, kube::Error> {
    let reconciliation = Reconciliation::new(context, stored, related)?;
    match Phase::of(stored) {
        Phase::Paused => reconciliation.pause().await,
        Phase::Deleting => reconciliation.finalize().await,
        Phase::Active => reconciliation.reconcile().await,
    }
}

/// One reconciliation of one object.
pub(crate) struct Reconciliation<'a, R> {
    context: &'a Context<R>,
    related: &'a [RelatedCache],
    api: Api<DynamicObject>,
    name: String,
    reference: ObjectReference,
    uid: String,
    deleting_since: Option<Timestamp>,
    /// None if the kind is cluster-scoped.
    namespace: Option<String>,
    finalizers: Vec<String>,
    stored: Arc<Stored>,
    /// Children of the object when the reconciliation began.
    children: ChildMap,
}

impl<'a, R: Reconciler> Reconciliation<'a, R> {
    pub(crate) fn new(
        context: &'a Context<R>,
        stored: &DynamicObject,
        related: &'a [RelatedCache],
    ) -> Result<Self, kube::Error> {
        let object = serde_json::to_value(stored).map_err(kube::Error::SerdeError)?;
        let namespace = stored.namespace();
        let uid = stored.uid().unwrap_or_default();
        let mut children = context.children.children_of(&uid);
        let deletion = stored.metadata.deletion_timestamp.as_ref();
        let mut reconciliation = Self {
            context,
            related,
            api: context.api(namespace.as_deref()),
            deleting_since: deletion.map(|time| time.0),
            namespace,
            finalizers: stored.finalizers().to_vec(),
            children: ChildMap::new(),
            name: stored.name_any(),
            reference: stored.object_ref(&context.resource),
            uid,
            stored: Arc::new(Stored {
                generation: stored.metadata.generation.unwrap_or_default(),
                last_validated: LastValidated::from_status_of(&object),
                policy: context.policy.get(),
                object,
            }),
        };
        // Labels can be copied, so ownership is checked.
        let owner = reconciliation.owner();
        children.retain(|key, child| owner.owns(&context.owned_types[key.type_index], child));
        reconciliation.children = children;
        Ok(reconciliation)
    }
}

impl<R: Reconciler> Reconciliation<'_, R> {
    /// Changes nothing but the condition `Paused`.
    pub(crate) async fn pause(&self) -> Result<Action, kube::Error> {
        // An existing condition `Paused` stays, since it has its own `lastTransitionTime`.
        let mut status = Status::from_object(&self.stored.object, self.context.has_status);
        let message = format!(
            "Reconciliation is paused: nothing is changed or deleted while the annotation `{}` is \"true\"",
            paused::ANNOTATION
        );
        status.set_condition(PAUSED, true, "Annotated", &message);
        // A spec change made while the object is paused has not been observed.
        status.keep_observed_generation();
        self.write_status(&mut status).await?;
        Ok(Action::AwaitChange)
    }

    /// Returns the status of an object that is not paused.
    fn status(&self) -> Status {
        let mut status = Status::from_object(&self.stored.object, self.context.has_status);
        status.remove_condition(PAUSED);
        status
    }

    fn observed_children(&self) -> Children<'_> {
        Children {
            children: &self.children,
        }
    }

    fn owner(&self) -> Owner<'_> {
        let namespace = self.namespace.as_deref();
        self.context.owner(namespace, &self.name, &self.uid)
    }

    fn writer(&self) -> ChildWriter<'_> {
        self.context.writer(self.owner())
    }

    async fn patch(&self, operations: Vec<PatchOperation>) -> Result<DynamicObject, kube::Error> {
        let patch = Patch::<()>::Json(json_patch::Patch(operations));
        let params = PatchParams::default();
        let patched = self.api.patch(&self.name, &params, &patch).await?;
        self.context.pending_writes.record(patched.clone());
        Ok(patched)
    }

    /// Patches the status if it differs. Returns true if it was written.
    async fn write_status(&self, status: &mut Status) -> Result<bool, kube::Error> {
        let written = status.write(&self.api, &self.name).await?;
        let is_written = written.is_some();
        if let Some(object) = written {
            self.context.pending_writes.record(object);
        }
        Ok(is_written)
    }

    fn related(&self) -> RelatedObjects<'_> {
        RelatedObjects {
            watches: &self.context.watches,
            watched: self.related,
            namespace: self.namespace.as_deref().unwrap_or_default(),
        }
    }

    async fn validate(&self, others: &Arc<Value>) -> ValidationResult {
        self.stored.validate(&self.context.validator, others).await
    }

    /// Reports an invalid object. It is suspended: nothing is changed until it is fixed.
    async fn invalid(
        &self,
        mut status: Status,
        message: &str,
        broken: &[Violation],
        next: Action,
    ) -> Result<Action, kube::Error> {
        status.set_condition(VALID, false, "Invalid", message);
        status.set_health(
            Health::Stalled,
            "Invalid",
            "Validation failed; reconciliation is suspended until the object is fixed",
        );
        let written = self.write_status(&mut status).await?;
        self.context
            .recorder
            .warning(&self.reference, "Invalid", message)
            .await;
        if written {
            tracing::warn!(error = message, "the object is invalid");
            self.count(broken);
        }
        Ok(next)
    }

    /// Reports the result of a step whose children have been written.
    async fn reconciled(
        &self,
        mut status: Status,
        progress: ReconcileOutput,
        changes: &AppliedChanges,
    ) -> Result<Action, kube::Error> {
        let ReconcileOutput {
            status: fields,
            readiness,
            requeue_after,
            children,
            reads_children,
            error: _,
        } = progress;
        let readiness = readiness.unwrap_or_else(|| self.readiness(&children, changes));
        // An object that was ready from the start gets no Event.
        let turned_ready = readiness.ready && status.had_condition(READY, false);
        status.set_fields(fields);
        let standing = if readiness.ready {
            Health::Ready
        } else {
            Health::Reconciling
        };
        status.set_health(standing, readiness.reason, &readiness.message);
        match self.write_status(&mut status).await {
            Err(kube::Error::Api(answer)) if answer.is_invalid() => {
                // Retried without the operator's own fields.
                let error = ReconcileError::Permanent {
                    reason: "StatusRejected",
                    message: format!("the status cannot be written: {}", answer.message),
                };
                return self.failed(self.status(), error).await;
            }
            written => written?,
        };
        // A result that requests an immediate requeue does not reset the back-off: the next step may fail as the
        // last one did.
        if !requeue_after.is_zero() {
            self.context.backoffs.reset(&self.uid);
        }
        let dropped = status.dropped();
        if !dropped.is_empty() {
            return Ok(self.fields_dropped(dropped, requeue_after).await);
        }
        if turned_ready {
            self.context
                .recorder
                .normal(&self.reference, readiness.reason, &readiness.message)
                .await;
        }
        if changes.outdate_result(reads_children) {
            return Ok(Action::RequeueAfter(Duration::ZERO));
        }
        Ok(Action::RequeueAfter(requeue_after))
    }

    /// Reports status fields that the API server has dropped, and delays the next step: without the values to be
    /// recorded it would be the same step again.
    async fn fields_dropped(&self, fields: &[String], requeue_after: Duration) -> Action {
        let note = format!(
            "StatusFieldsDropped: the CRD in the cluster does not have the status fields {}; apply the CRD of this release",
            fields.join(", ")
        );
        tracing::warn!(note, "the API server did not store all status fields");
        self.context
            .recorder
            .warning(&self.reference, PROCESSING_ERROR, &note)
            .await;
        match self.backoff() {
            Action::Backoff(delay) => Action::Backoff(delay.max(requeue_after)),
            next => next,
        }
    }

    /// Reports an error and returns when the object is reconciled again.
    async fn failed(
        &self,
        mut status: Status,
        error: ReconcileError,
    ) -> Result<Action, kube::Error> {
        let (error, recheck_after) = error.split_requeue();
        let message = error.to_string();
        let (reason, standing, next) = match error {
            ReconcileError::Invalid(errors) if self.deleting_since.is_none() => {
                // The object itself is valid; an object that it refers to is not.
                let message = aggregate(&errors);
                return self.invalid(status, &message, &[], self.backoff()).await;
            }
            ReconcileError::Invalid(_) | ReconcileError::RequeueAfter { .. } => {
                ("Invalid", Health::Reconciling, self.backoff())
            }
            // Reconciled again nevertheless: the cause may change outside, where no watch reports it.
            ReconcileError::Permanent { reason, .. } => {
                let after = match self.deleting_since {
                    Some(_) => LONGEST_WHILE_DELETING,
                    None => recorder::RENEW_AFTER,
                };
                let after = recheck_after.map_or(after, |recheck| after.min(recheck));
                (reason, Health::Stalled, Action::Backoff(after))
            }
            ReconcileError::Transient { reason, .. } => {
                (reason, Health::Reconciling, self.backoff())
            }
        };
        tracing::warn!(reason, error = message, "reconciliation failed");
        status.set_health(standing, reason, &message);
        self.write_status(&mut status).await?;
        let note = format!("{reason}: {message}");
        let announcer = &self.context.recorder;
        announcer
            .warning(&self.reference, PROCESSING_ERROR, &note)
            .await;
        Ok(next)
    }

    /// Returns the readiness of an object whose operator does not set it: it is ready once all children, in their
    /// current state, are up to date.
    fn readiness(&self, desired: &[Value], changes: &AppliedChanges) -> Readiness {
        let children = changes.children_after(&self.children);
        let observation = Children {
            children: &children,
        };
        let mut desired = desired.iter();
        let waits_for = desired.find_map(|child| observation.pending_reason(child));
        if self.deleting_since.is_some() {
            let message =
                waits_for.unwrap_or("the external resources are being removed".to_owned());
            return Readiness {
                ready: false,
                reason: "Terminating",
                message,
            };
        }
        match waits_for {
            Some(message) => Readiness {
                ready: false,
                reason: "ChildrenInProgress",
                message,
            },
            None => Readiness {
                ready: true,
                reason: "Available",
                message: "All owned resources are up to date".to_owned(),
            },
        }
    }

    fn backoff(&self) -> Action {
        Action::Backoff(self.retry_delay())
    }

    /// Returns the delay before the next attempt, which grows with each one.
    fn retry_delay(&self) -> Duration {
        let backoffs = &self.context.backoffs;
        let is_deleted = self.deleting_since.is_some();
        backoffs.record_failure(&self.uid, self.stored.generation, is_deleted)
    }

    fn forget(&self) {
        self.context.forget(&self.uid);
    }

    fn count(&self, broken: &[Violation]) {
        for violation in broken {
            let kind = self.context.validator.kind().to_owned();
            let labels = ViolationLabels {
                kind,
                rule: violation.rule.clone(),
                component: "controller",
            };
            self.context.metrics.violations.get_or_create(&labels).inc();
        }
    }
}
