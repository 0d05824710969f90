//! Error of a step.

use std::time::Duration;

use lockstep_shared_validation::FieldError;

/// Reason why a step did not succeed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
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
    /// An error that says nothing about the state of what the object manages, such as a call to another system without a
    /// response: an object that is ready stays ready.
    #[error("{0}")]
    Inconclusive(Box<ReconcileError>),
    /// A retry may succeed.
    #[error("{message}")]
    Transient {
        /// Reason for programs, one CamelCase word.
        reason: &'static str,
        /// Message for people, one sentence.
        message: String,
    },
}

/// Error without the variants that wrap others.
pub(crate) struct WrappedError {
    pub(crate) error: ReconcileError,
    /// Time after which the object is reconciled again, if the error sets one.
    pub(crate) requeue_after: Option<Duration>,
    /// If true, the error says nothing about the state of what the object manages.
    pub(crate) is_inconclusive: bool,
}

impl ReconcileError {
    /// Returns the reason for programs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "Invalid",
            Self::Permanent { reason, .. } | Self::Transient { reason, .. } => reason,
            Self::RequeueAfter { error, .. } | Self::Inconclusive(error) => error.reason(),
        }
    }

    pub(crate) fn unwrapped(self) -> WrappedError {
        match self {
            Self::RequeueAfter { after, error } => {
                let inner = error.unwrapped();
                WrappedError {
                    requeue_after: inner.requeue_after.or(Some(after)),
                    ..inner
                }
            }
            Self::Inconclusive(error) => WrappedError {
                is_inconclusive: true,
                ..error.unwrapped()
            },
            error => WrappedError {
                error,
                requeue_after: None,
                is_inconclusive: false,
            },
        }
    }
}
