//! Error of a step.

use std::time::Duration;

use lockstep_shared_validation::FieldError;

/// Reason why a step did not succeed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReconcileError {
    /// Something that the object refers to violates a rule. The object is treated as invalid and reconciled again
    /// after a back-off, since the fix may be made elsewhere.
    #[error("{}", lockstep_shared_validation::aggregate(.0))]
    Invalid(Vec<FieldError>),
    /// A retry without a change cannot succeed.
    #[error("{message}")]
    Permanent {
        /// Reason for programs, one CamelCase word.
        reason: &'static str,
        /// Message for people: what is wrong and what to do.
        message: String,
    },
    /// An error whose cause may disappear outside the cluster, where no watch reports it.
    #[error("{error}")]
    RequeueAfter {
        /// Time until the object is reconciled again.
        after: Duration,
        /// The error that is reported.
        error: Box<ReconcileError>,
    },
    /// A retry may succeed.
    #[error("{message}")]
    Transient {
        /// Reason for programs, one CamelCase word.
        reason: &'static str,
        /// Message for people, one sentence.
        message: String,
    },
}

impl ReconcileError {
    /// Splits off the time after which the object is reconciled again, if the error sets one.
    pub(crate) fn split_requeue(self) -> (Self, Option<Duration>) {
        match self {
            Self::RequeueAfter { after, error } => {
                let (error, earlier) = error.split_requeue();
                (error, earlier.or(Some(after)))
            }
            error => (error, None),
        }
    }
}
