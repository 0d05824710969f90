//! Next attempts of deletions that AWS [refuses](crate::deletion::refused).

use std::time::Duration;

use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::{FinalizeOutcome, ReconcileError};

use crate::aws::rds_events::changed_instances::Owner;
use crate::deletion::deleted::Deleted;
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

    /// Has the objects tried again whose deletions wait for the same reason as this one did, whose call was accepted.
    pub(crate) fn accepted_call(&self, deleted: &Deleted<'_>, call: DeletionCall) {
        let owner = Owner::from_object(deleted.request.object);
        self.shared
            .enqueue
            .all(&self.refused.accepted(&owner, call));
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
            error: Box::new(at_most(time, *error)),
        },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_the_next_attempt_is_shortened_however_often_an_error_is_wrapped() {
        let minutes = Duration::from_mins;
        let wrapped = |outer, inner| {
            let denied = ReconcileError::permanent("RoleNotAssumed", "denied");
            denied.requeue_after(inner).requeue_after(outer)
        };
        let short = at_most(minutes(2), wrapped(minutes(10), minutes(10)));
        assert_eq!(short, wrapped(minutes(2), minutes(2)));
        let shorter = wrapped(minutes(1), minutes(1));
        assert_eq!(at_most(minutes(2), shorter.clone()), shorter);
    }
}
