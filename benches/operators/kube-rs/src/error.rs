//! Errors of a reconciliation.

use kube::runtime::finalizer;

use crate::dns_api::DnsError;

/// Reason why a reconciliation has failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the DNS API does not answer as expected: {0}")]
    Dns(#[from] DnsError),
    #[error("the API server does not answer as expected: {0}")]
    Kube(#[from] kube::Error),
    #[error(
        "the name {name} has the record {id} of another owner; delete it, or choose another name"
    )]
    NameTaken { name: String, id: String },
    #[error("the object has no {0}")]
    Incomplete(&'static str),
    #[error(transparent)]
    Finalizer(Box<finalizer::Error<Error>>),
}

impl Error {
    /// Returns true if a retry can succeed only after a change.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::NameTaken { .. } => true,
            Self::Finalizer(error) => {
                matches!(&**error, finalizer::Error::ApplyFailed(error) if error.is_permanent())
            }
            _ => false,
        }
    }

    /// Returns the reason for conditions and Events.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Dns(_) => "DnsApiFailed",
            Self::NameTaken { .. } => "NameTaken",
            _ => "Failed",
        }
    }
}
