//! Result: the desired children of a workload.

use serde_json::Value;
use thiserror::Error;

/// Desired children of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedObjects {
    /// Desired children.
    pub children: Vec<Value>,
    /// Differences between the workload and its children, such as a change of a field that is immutable. Each is a
    /// sentence for an Event.
    pub notices: Vec<String>,
}

impl OwnedObjects {
    pub(crate) fn extend(&mut self, children: impl IntoIterator<Item = Value>) {
        self.children.extend(children);
    }
}

/// Reason why a workload has no valid children. The existing ones are to be kept as they are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnedObjectsError {
    /// A cluster-scoped aggregator does not name the namespace of its objects.
    #[error("spec.resourceNamespace is required: the objects of the aggregator are created there")]
    NoNamespace,
    /// The `PersistentVolumeClaim` templates have no volume for Vector's data directory.
    #[error(
        "spec.persistence.volumeClaimTemplates needs a claim with the name `data`, the volume of Vector's data directory"
    )]
    NoDataClaim,
    /// A Secret would be larger than the API server accepts.
    #[error("the Secret {name} would have {bytes} bytes, and a Secret has at most {max}; {remedy}")]
    SecretTooLarge {
        /// Name of the Secret.
        name: String,
        /// Size of its values.
        bytes: usize,
        /// Maximum size.
        max: usize,
        /// Advice for the user.
        remedy: &'static str,
    },
}
