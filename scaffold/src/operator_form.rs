//! Forms of an operator: a handler, or a reconciler.

use clap::Args;

use crate::template::{
    HANDLER, HANDLER_REPOSITORY, KIND, RECONCILER, RECONCILER_REPOSITORY, REPOSITORY, Template,
};

/// Options that choose the form of an operator.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OperatorFormArgs {
    /// Write the operator as a function that returns the children and the status of an object. This is the default.
    #[arg(long, conflicts_with = "reconciler")]
    pub handler: bool,
    /// Write the operator as a reconciler of something outside the cluster, with a client, a simulator and a chaos test.
    #[arg(long)]
    pub reconciler: bool,
}

/// Form of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorForm {
    /// A function that returns the desired state.
    Handler,
    /// A reconciler of something outside the cluster.
    Reconciler,
}

impl OperatorForm {
    /// Returns the templates of a repository with such an operator.
    pub(crate) fn repository(self) -> Vec<Template> {
        let own = match self {
            Self::Handler => HANDLER_REPOSITORY,
            Self::Reconciler => RECONCILER_REPOSITORY,
        };
        [REPOSITORY, own].concat()
    }

    /// Returns the templates of a kind with such an operator.
    pub(crate) fn kind(self) -> Vec<Template> {
        let own = match self {
            Self::Handler => HANDLER,
            Self::Reconciler => RECONCILER,
        };
        [KIND, own].concat()
    }
}

impl From<OperatorFormArgs> for OperatorForm {
    fn from(args: OperatorFormArgs) -> Self {
        if args.reconciler {
            Self::Reconciler
        } else {
            Self::Handler
        }
    }
}
