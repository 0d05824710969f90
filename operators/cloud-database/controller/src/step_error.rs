//! Error of a step, together with the status fields that report it.

use lockstep_controller::{ReconcileError, ReconcileOutput};
use serde_json::{Map, Value};

use crate::call_error::CallError;

/// Error of a step.
pub(crate) struct StepError {
    /// Status fields that are written together with the error.
    status: Map<String, Value>,
    error: ReconcileError,
}

impl StepError {
    /// Returns the result that reports the error.
    pub(crate) fn into_output(self) -> ReconcileOutput {
        ReconcileOutput::failed(self.status, self.error)
    }
}

/// Adds status fields to an error. They are written together with it.
pub(crate) fn with_status(
    mut status: Map<String, Value>,
    error: impl Into<StepError>,
) -> StepError {
    let error = error.into();
    status.extend(error.status);
    StepError {
        status,
        error: error.error,
    }
}

impl From<ReconcileError> for StepError {
    fn from(error: ReconcileError) -> Self {
        Self {
            status: Map::new(),
            error,
        }
    }
}

impl From<CallError> for StepError {
    fn from(error: CallError) -> Self {
        ReconcileError::from(error).into()
    }
}
