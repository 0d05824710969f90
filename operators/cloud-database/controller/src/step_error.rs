//! Error of a step, together with the status fields that report it.

use lockstep_controller::{ReadObject, ReconcileError, ReconcileOutput};
use serde_json::{Map, Value};

use crate::call_error::CallError;
use crate::modification::outcomes::Outcomes;

/// Error of a step.
pub(crate) struct StepError {
    /// Status fields that are written together with the error.
    status: Map<String, Value>,
    /// Outcomes of the requests of the step, if the spec was compared with the instance.
    outcomes: Option<Box<Outcomes>>,
    /// Objects that were read, whose changes trigger the next reconciliation.
    reads: Vec<ReadObject>,
    error: ReconcileError,
}

impl StepError {
    /// Returns the result that reports the error.
    pub(crate) fn into_output(self) -> ReconcileOutput {
        // Without outcomes, the condition follows from the error.
        let synced = self.outcomes.as_ref().map(|it| it.condition());
        let events = self.outcomes.iter().flat_map(|it| it.events());
        ReconcileOutput {
            conditions: synced.into_iter().collect(),
            events: events.collect(),
            reads: self.reads,
            ..ReconcileOutput::failed(self.status, self.error)
        }
    }

    /// Adds objects that were read.
    pub(crate) fn with_reads(self, reads: Vec<ReadObject>) -> Self {
        Self { reads, ..self }
    }

    /// Adds the outcomes of the requests of the step.
    pub(crate) fn with_outcomes(self, outcomes: Outcomes) -> Self {
        Self {
            outcomes: Some(Box::new(outcomes)),
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
            reads: Vec::new(),
            error,
        }
    }
}

impl From<CallError> for StepError {
    fn from(error: CallError) -> Self {
        ReconcileError::from(error).into()
    }
}
