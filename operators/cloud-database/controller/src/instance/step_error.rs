//! Error of a step, together with what it has done before.

use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::{ReadObject, ReconcileError, ReconcileOutput};

use crate::aws::call_error::CallError;
use crate::instance::modification::outcomes::Outcomes;

/// Error of a step.
pub(crate) struct StepError {
    /// State for the status, if the instance is not what the object needs.
    shown: Option<Box<Shown>>,
    /// Outcomes of the requests of the step, if the spec was compared with the instance.
    outcomes: Option<Box<Outcomes>>,
    /// Objects that were read, whose changes trigger the next reconciliation.
    reads: Vec<ReadObject>,
    error: ReconcileError,
}

/// State of an instance, or its absence, that only a user can change.
pub(crate) struct Shown {
    /// Status of the instance in RDS.
    pub(crate) phase: Option<String>,
    pub(crate) message: String,
}

impl StepError {
    /// Returns the result that reports the error.
    pub(crate) fn into_output(self, status: &mut CloudDatabaseStatus) -> ReconcileOutput {
        if let Some(shown) = self.shown {
            let Shown { phase, message } = *shown;
            status.phase = phase;
            status.message = Some(message);
        }
        // Without outcomes, the condition follows from the error.
        let synced = self.outcomes.as_ref().map(|it| it.condition());
        let events = self.outcomes.iter().flat_map(|it| it.events());
        ReconcileOutput {
            conditions: synced.into_iter().collect(),
            events: events.collect(),
            reads: self.reads,
            error: Some(self.error),
            ..ReconcileOutput::default()
        }
    }

    /// Adds what the status shows.
    pub(crate) fn with_shown(self, shown: Shown) -> Self {
        Self {
            shown: Some(Box::new(shown)),
            ..self
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

impl From<ReconcileError> for StepError {
    fn from(error: ReconcileError) -> Self {
        Self {
            shown: None,
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
