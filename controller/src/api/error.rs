//! Error of a step.

use std::time::Duration;

use lockstep_shared_validation::FieldError;

/// Reason why a step did not succeed: what is wrong and what to do, and whether it passes by itself.
///
/// The status shows both in the condition `Ready`. A [`transient`](Self::transient) error is retried with a back-off for the
/// object. After a [`permanent`](Self::permanent) one, the object is reconciled after a change, and otherwise only to renew its
/// Event, within an hour.
///
/// ```
/// use std::time::Duration;
///
/// use lockstep_controller::ReconcileError;
///
/// let busy = ReconcileError::transient("ZoneLocked", "the zone is locked: wait until its transfer ends")
///     .requeue_after(Duration::from_secs(30));
/// assert_eq!(busy.reason(), "ZoneLocked");
/// assert!(busy.passes_by_itself());
///
/// let wrong = ReconcileError::permanent("ZoneUnknown", "the provider has no zone `a.test`: change spec.zone");
/// assert!(!wrong.passes_by_itself());
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// Something that the object refers to violates a rule. The object is treated as invalid and reconciled again
    /// after a back-off, since the fix may be made elsewhere.
    #[error("{}", lockstep_shared_validation::aggregate(.0, false))]
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
    /// response: an object that is ready with its current spec stays ready.
    #[error("{0}")]
    Inconclusive(Box<ReconcileError>),
    /// An error that looks permanent, and whose cause may lie outside the object nevertheless: it is retried with a back-off.
    #[error("{0}")]
    Retried(Box<ReconcileError>),
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
    /// If true, the object is reconciled again after a back-off, even if the error is permanent.
    pub(crate) is_retried: bool,
}

impl ReconcileError {
    /// Returns an error after which a retry may succeed. The reason is one CamelCase word, and the message says what is wrong
    /// and what to do.
    pub fn transient(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Transient {
            reason,
            message: message.into(),
        }
    }

    /// Returns an error after which a retry without a change cannot succeed. The reason is one CamelCase word, and the message
    /// says what is wrong and what to do.
    pub fn permanent(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Permanent {
            reason,
            message: message.into(),
        }
    }

    /// Sets the time after which the object is reconciled again at the latest, for a cause that may disappear outside the
    /// cluster.
    #[must_use]
    pub fn requeue_after(self, after: Duration) -> Self {
        Self::RequeueAfter {
            after,
            error: Box::new(self),
        }
    }

    /// Marks an error that says nothing about the state of what the object manages, such as a call to another system without
    /// an answer: an object that is ready stays ready. One of which the generation has changed does not, because of a new spec,
    /// a new default or its deletion: an earlier attempt may have written a part of the change.
    ///
    /// # Assumptions
    ///
    /// Each write without a change of the generation, such as a repair of drift, was answered. If the answer and the status after
    /// it were lost, the object stays ready until a read succeeds.
    ///
    /// ```
    /// use lockstep_controller::ReconcileError;
    ///
    /// let unreachable = ReconcileError::transient("BrokerUnreachable", "the broker does not answer");
    /// assert!(unreachable.inconclusive().passes_by_itself());
    /// ```
    #[must_use]
    pub fn inconclusive(self) -> Self {
        Self::Inconclusive(Box::new(self))
    }

    /// Retries a permanent error with the back-off of the object, ten minutes at most: what rejects a request, such as an
    /// admission policy, may change where no watch reports it.
    #[must_use]
    pub(crate) fn retried(self) -> Self {
        Self::Retried(Box::new(self))
    }

    /// Returns true if a retry may succeed without a change in the cluster.
    #[must_use]
    pub fn passes_by_itself(&self) -> bool {
        match self {
            Self::Permanent { .. } => false,
            // A violation of a rule may be ended by a change of an object that this one refers to.
            Self::Invalid(_)
            | Self::RequeueAfter { .. }
            | Self::Retried(_)
            | Self::Transient { .. } => true,
            Self::Inconclusive(error) => error.passes_by_itself(),
        }
    }

    /// Returns the reason for programs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "Invalid",
            Self::Permanent { reason, .. } | Self::Transient { reason, .. } => reason,
            Self::RequeueAfter { error, .. } | Self::Inconclusive(error) | Self::Retried(error) => {
                error.reason()
            }
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
            Self::Retried(error) => WrappedError {
                is_retried: true,
                ..error.unwrapped()
            },
            error => WrappedError {
                error,
                requeue_after: None,
                is_inconclusive: false,
                is_retried: false,
            },
        }
    }
}
