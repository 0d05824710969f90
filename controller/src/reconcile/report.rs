//! Last step of a reconciliation: reports its conclusion in the status and in Events.

use std::time::Duration;

use lockstep_shared_validation::{Violation, aggregate};

use crate::api::error::{ReconcileError, WrappedError};
use crate::api::reconciler::{
    OperatorEvent, Readiness, ReconcileOutput, Reconciler, SuspendedRequest,
};
use crate::children::AppliedChanges;
use crate::events::recorder;
use crate::metrics::ViolationLabels;
use crate::queue::backoff::{LONGEST_OF_REJECTED, LONGEST_WHILE_DELETING};
use crate::reconcile::action::Action;
use crate::reconcile::conclusion::Conclusion;
use crate::reconcile::{Reconciliation, VALID};
use crate::status::patch::{Health, READY, Status};

/// Reason of every Event that reports a failure; the note starts with the specific reason.
const PROCESSING_ERROR: &str = "ProcessingError";

/// Message of the condition `Stalled` of an invalid object.
const SUSPENDED: &str = "Validation failed; reconciliation is suspended until the object is fixed";

impl<R: Reconciler> Reconciliation<'_, R> {
    /// Reports the conclusion, with one patch of the status if it changes, and returns when the object is reconciled
    /// again.
    pub(crate) async fn report(&self, conclusion: Conclusion) -> Result<Action, kube::Error> {
        match conclusion {
            Conclusion::Silent(action) => Ok(action),
            Conclusion::Status(mut status, action) => {
                self.write_report(&mut status).await?;
                Ok(action)
            }
            Conclusion::Invalid {
                status,
                message,
                violations,
                action,
            } => self.invalid(status, &message, &violations, action).await,
            Conclusion::Failed { status, error } => self.failed(status, error).await,
            Conclusion::Reconciled {
                status,
                output,
                changes,
            } => self.reconciled(status, output, &changes).await,
        }
    }

    /// Writes the status together with the request of a user that this reconciliation has handled.
    async fn write_report(&self, status: &mut Status) -> Result<bool, kube::Error> {
        let Some(request) = &self.request else {
            return self.write_status(status).await;
        };
        status.set_handled_request(&request.value);
        let written = self.write_status(status).await?;
        let requests = &self.context.reconcile_requests;
        requests.complete(&self.uid, request);
        Ok(written)
    }

    /// Reports an invalid object. It is suspended: nothing is changed until it is fixed. What it manages goes on serving its
    /// clients, so that the operator says whether the object is ready.
    async fn invalid(
        &self,
        mut status: Status,
        message: &str,
        broken: &[Violation],
        next: Action,
    ) -> Result<Action, kube::Error> {
        status.set_condition(VALID, false, "Invalid", message);
        let next = match self.observed_while_suspended().await {
            None => {
                status.set_health(Health::Stalled, "Invalid", SUSPENDED);
                next
            }
            Some(output) => {
                status.set_fields(output.status);
                status.set_operator_conditions(&output.conditions);
                if let Some(readiness) = output.readiness {
                    let Readiness {
                        ready,
                        reason,
                        message,
                    } = readiness;
                    status.set_condition(READY, ready, reason, &message);
                }
                status.set_stalled("Invalid", SUSPENDED);
                self.publish(&output.events).await;
                next.within(output.requeue_after)
            }
        };
        let written = self.write_report(&mut status).await?;
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

    async fn observed_while_suspended(&self) -> Option<ReconcileOutput> {
        let suspended = SuspendedRequest {
            object: &self.stored.object,
            last_validated: self.stored.last_validated.as_ref(),
            related: self.related(),
        };
        self.context.reconciler.observe_suspended(&suspended).await
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
            conditions,
            events,
            stalled,
            reads: _,
            error: _,
        } = progress;
        let readiness = readiness.unwrap_or_else(|| self.readiness(&children, changes));
        // An object that was ready from the start gets no Event.
        let turned_ready = readiness.ready && status.had_condition(READY, false);
        status.set_fields(fields);
        status.set_operator_conditions(&conditions);
        let health = if readiness.ready {
            Health::Ready
        } else {
            Health::Reconciling
        };
        status.set_health(health, readiness.reason, &readiness.message);
        if let Some(stalled) = stalled {
            status.set_stalled(stalled.reason, &stalled.message);
        }
        match self.write_report(&mut status).await {
            Err(kube::Error::Api(response)) if response.is_invalid() => {
                // Retried without the operator's own fields.
                let error = ReconcileError::Permanent {
                    reason: "StatusRejected",
                    message: format!("the status cannot be written: {}", response.message),
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
        self.publish(&events).await;
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

    /// Publishes the operator's own Events.
    pub(crate) async fn publish(&self, events: &[OperatorEvent]) {
        let recorder = &self.context.recorder;
        for event in events {
            if event.is_warning {
                recorder
                    .warning(&self.reference, event.reason, &event.note)
                    .await;
            } else {
                recorder
                    .normal(&self.reference, event.reason, &event.note)
                    .await;
            }
        }
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
        let WrappedError {
            error,
            requeue_after: recheck_after,
            is_inconclusive,
            is_retried,
        } = error.unwrapped();
        if is_inconclusive {
            status.keep_readiness();
        }
        // What the operator has said of an earlier spec does not apply to the current one.
        if !is_inconclusive || !status.is_current() {
            let reconciler = &self.context.reconciler;
            status.set_remaining_operator_conditions(&reconciler.conditions_on_error(&error));
        }
        let message = error.to_string();
        let (reason, health, next) = match error {
            ReconcileError::Invalid(errors) if self.deleting_since.is_none() => {
                // The object itself is valid; an object that it refers to is not.
                let message = aggregate(&errors, false);
                return self.invalid(status, &message, &[], self.backoff()).await;
            }
            ReconcileError::Invalid(_)
            | ReconcileError::RequeueAfter { .. }
            | ReconcileError::Inconclusive(_)
            | ReconcileError::Retried(_) => ("Invalid", Health::Reconciling, self.backoff()),
            // Reconciled again nevertheless: the cause may change outside, where no watch reports it.
            ReconcileError::Permanent { reason, .. } => {
                let after = match self.deleting_since {
                    _ if is_retried => self.retry_delay().min(LONGEST_OF_REJECTED),
                    Some(_) => LONGEST_WHILE_DELETING,
                    None => recorder::RENEW_AFTER,
                };
                let after = recheck_after.map_or(after, |recheck| after.min(recheck));
                (reason, Health::Stalled, Action::Backoff(after))
            }
            ReconcileError::Transient { reason, .. } => {
                let delay = self.retry_delay();
                let delay = recheck_after.map_or(delay, |recheck| delay.min(recheck));
                (reason, Health::Reconciling, Action::Backoff(delay))
            }
        };
        tracing::warn!(reason, error = message, "reconciliation failed");
        status.set_health(health, reason, &message);
        self.write_report(&mut status).await?;
        let note = format!("{reason}: {message}");
        let recorder = &self.context.recorder;
        recorder
            .warning(&self.reference, PROCESSING_ERROR, &note)
            .await;
        Ok(next)
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
