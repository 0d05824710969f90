//! Error of a step, together with what it has done before.

use lockstep_cloud_database_api::CloudDatabaseStatus;
use lockstep_controller::{ReadObject, ReconcileError, ReconcileOutput};

use crate::aws::call_error::{CallError, ROLE_NOT_ASSUMED};
use crate::deletion::refused::{Cause, DeletionCall};
use crate::instance::modification::outcomes::Outcomes;

/// Error of a step.
pub(crate) struct StepError {
    /// State for the status, if the instance is not what the object needs.
    shown: Option<Box<Shown>>,
    /// Outcomes of the requests of the step, if the spec was compared with the instance.
    outcomes: Option<Box<Outcomes>>,
    /// Objects that were read, whose changes trigger the next reconciliation.
    reads: Vec<ReadObject>,
    /// Code of a refusal for a reason outside of the object.
    code: Option<String>,
    /// Refused call of a deletion, for a reason outside of the object.
    cause: Option<Box<Cause>>,
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

    /// Returns the reason of the error.
    pub(crate) fn reason(&self) -> &'static str {
        self.error.reason()
    }

    /// Returns the error without what the step has done before.
    pub(crate) fn error(&self) -> &ReconcileError {
        &self.error
    }

    /// Replaces the error by another one for the same step.
    pub(crate) fn map(self, replace: impl FnOnce(ReconcileError) -> ReconcileError) -> Self {
        Self {
            error: replace(self.error),
            ..self
        }
    }

    /// Returns the refused call of a deletion, if its reason is outside of the object.
    pub(crate) fn cause(&self) -> Option<&Cause> {
        self.cause.as_deref()
    }

    /// Adds the call of a deletion that has ended with the error.
    pub(crate) fn during(self, call: DeletionCall) -> Self {
        let cause = self.code.clone().map(|code| Box::new(Cause { call, code }));
        Self { cause, ..self }
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
            code: (error.reason() == ROLE_NOT_ASSUMED).then(|| ROLE_NOT_ASSUMED.to_owned()),
            cause: None,
            error,
        }
    }
}

impl From<CallError> for StepError {
    fn from(error: CallError) -> Self {
        let code = error.code_of_refusal().map(String::from);
        Self {
            code,
            ..ReconcileError::from(error).into()
        }
    }
}
