//! Error of a step.

use std::time::Duration;

use serde_json::{Map, Value};
use shared_validation::FieldError;

/// Reason why a step did not succeed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReconcileError {
    /// Something that the object refers to violates a rule. The object is treated as invalid and reconciled again
    /// after a back-off, since the fix may be made elsewhere.
    #[error("{}", shared_validation::aggregate(.0))]
    Invalid(Vec<FieldError>),
    /// A retry without a change cannot succeed.
    #[error("{message}")]
    Permanent {
        /// Reason for programs, one CamelCase word.
        reason: &'static str,
        /// Message for people: what is wrong and what to do.
        message: String,
    },
    /// An error that the operator's own status fields report as well.
    #[error("{error}")]
    Told {
        /// Status fields, as in [`ReconcileOutput`].
        status: Map<String, Value>,
        /// The error itself.
        error: Box<ReconcileError>,
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
