//! Next attempts of deletions that AWS [refuses](crate::deletion::refused).

use std::time::Duration;

use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::{FinalizeOutcome, ReconcileError};

use crate::aws::rds_events::changed_instances::Owner;
use crate::deletion::refused::{DeletionCall, PROBE_INTERVAL};
use crate::instance::instance_reconciler::InstanceReconciler;
use crate::instance::step_error::StepError;

impl InstanceReconciler {
    /// Returns the result of a step of a deletion. The object that has waited longest for the reason of a refusal tries again
    /// soon.
    pub(crate) fn retry_refused(
        &self,
        owner: &Owner,
        step: Result<FinalizeOutcome, StepError>,
        status: &mut CloudDatabaseStatus,
    ) -> FinalizeOutcome {
        let cause = step.as_ref().err().and_then(StepError::cause).cloned();
        if !is_waiting_still(&step) {
            self.shared
                .enqueue
                .all(&self.refused.leave(owner, cause.as_ref()));
        }
        let error = match step {
            Ok(outcome) => return outcome,
            Err(error) => error,
        };
        let mut output = self.output_of(error, status);
        if cause.is_some_and(|cause| self.refused.add(owner, cause)) {
            output.error = output.error.map(|error| at_most(PROBE_INTERVAL, error));
        }
        FinalizeOutcome::Waiting(output)
    }

    /// Has the objects tried again whose deletions wait for a call that was accepted for another one.
    pub(crate) fn accepted_call(&self, call: DeletionCall) {
        self.shared.enqueue.all(&self.refused.accepted(call));
    }
}

/// Returns true if a step does not tell whether the call would be refused again: it was not sent, or not answered.
fn is_waiting_still(step: &Result<FinalizeOutcome, StepError>) -> bool {
    match step {
        Ok(outcome) => matches!(outcome, FinalizeOutcome::Waiting(_)),
        Err(error) => error.cause().is_none() && error.error().passes_by_itself(),
    }
}

/// Shortens the time to the next attempt.
fn at_most(time: Duration, error: ReconcileError) -> ReconcileError {
    match error {
        ReconcileError::RequeueAfter { after, error } => ReconcileError::RequeueAfter {
            after: after.min(time),
            error,
        },
        error => error,
    }
}
