//! Error of a step, together with the status fields that report it.

use lockstep_controller::{OperatorCondition, ReconcileError, ReconcileOutput};
use serde_json::{Map, Value};

use crate::call_error::CallError;
use crate::modification::outcomes::{Outcomes, SYNCED};

/// Error of a step.
pub(crate) struct StepError {
    /// Status fields that are written together with the error.
    status: Map<String, Value>,
    /// Outcomes of the requests of the step, if the spec was compared with the instance.
    outcomes: Option<Box<Outcomes>>,
    error: ReconcileError,
}

impl StepError {
    /// Returns the result that reports the error.
    pub(crate) fn into_output(self) -> ReconcileOutput {
        let synced = match (&self.outcomes, &self.error) {
            (Some(outcomes), _) => Some(outcomes.condition()),
            // It is unknown whether the instance matches the spec.
            (None, ReconcileError::Inconclusive(_)) => None,
            (None, error) => Some(OperatorCondition {
                type_: SYNCED,
                is_true: false,
                reason: error.reason(),
                message: error.to_string(),
            }),
        };
        let events = self.outcomes.iter().flat_map(|outcomes| outcomes.events());
        ReconcileOutput {
            conditions: synced.into_iter().collect(),
            events: events.collect(),
            ..ReconcileOutput::failed(self.status, self.error)
        }
    }

    /// Adds the outcomes of the requests of the step.
    pub(crate) fn with_outcomes(self, outcomes: Outcomes) -> Self {
        Self {
            outcomes: Some(Box::new(outcomes)),
            ..self
        }
    }

    /// Changes the error.
    pub(crate) fn map(self, map: impl FnOnce(ReconcileError) -> ReconcileError) -> Self {
        Self {
            error: map(self.error),
            ..self
        }
    }
}

/// Adds status fields to an error. They are written together with it.
pub(crate) fn with_status(
    mut status: Map<String, Value>,
    error: impl Into<StepError>,
) -> StepError {
    let error = error.into();
    status.extend(error.status.clone());
    StepError { status, ..error }
}

impl From<ReconcileError> for StepError {
    fn from(error: ReconcileError) -> Self {
        Self {
            status: Map::new(),
            outcomes: None,
            error,
        }
    }
}

impl From<CallError> for StepError {
    fn from(error: CallError) -> Self {
        ReconcileError::from(error).into()
    }
}
