//! Conclusion of a reconciliation: what its steps hand to the last one, which reports it.

use lockstep_shared_validation::Violation;

use crate::api::error::ReconcileError;
use crate::api::reconciler::ReconcileOutput;
use crate::children::AppliedChanges;
use crate::reconcile::action::Action;
use crate::status::patch::Status;

/// Report at the end of a reconciliation, in the status and in Events.
#[allow(
    clippy::large_enum_variant,
    reason = "one exists at a time, and it is boxed where a step stops"
)]
pub(crate) enum Conclusion {
    /// Nothing.
    Silent(Action),
    /// This status.
    Status(Status, Action),
    /// The object is invalid.
    Invalid {
        status: Status,
        message: String,
        violations: Vec<Violation>,
        action: Action,
    },
    /// A step has failed.
    Failed {
        status: Status,
        error: ReconcileError,
    },
    /// The operator's step has succeeded, and its children are written.
    Reconciled {
        status: Status,
        output: ReconcileOutput,
        changes: AppliedChanges,
    },
}

/// Reason why a step is the last one before the report.
pub(crate) enum Stop {
    Concluded(Box<Conclusion>),
    /// An error of the API server, which is not reported in the status.
    Api(kube::Error),
}

impl From<Conclusion> for Stop {
    fn from(conclusion: Conclusion) -> Self {
        Self::Concluded(Box::new(conclusion))
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}
