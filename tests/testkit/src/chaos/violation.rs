//! Broken properties.

use std::fmt;

/// Property of an operator that chaos checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Property {
    /// The external system has exactly what the objects want, and what others own in it is unchanged.
    ExternalState,
    /// The owned objects exist, have the desired fields and a controller owner reference.
    OwnedObjects,
    /// Nothing is left of a deleted object.
    NoOrphans,
    /// An object whose deletion was requested is removed: no finalizer is left.
    Deletion,
    /// The status is true: `Ready`, the observed generation and the fields that the author expects.
    Status,
    /// While the status says that a generation is ready, the external system has what this generation wants.
    TruthfulStatus,
    /// The operator does not change the spec.
    Spec,
    /// Once the desired state is reached, a reconciliation writes nothing.
    Silence,
    /// Reconciliations and calls are bounded, also while the external system fails.
    CallRate,
    /// No step of the operator panics.
    NoPanics,
    /// A property of the author, see `Chaos::invariant`.
    Invariant,
    /// No secret value is in a status, an Event or an owned object.
    NoSecrets,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExternalState => "external state",
            Self::OwnedObjects => "owned objects",
            Self::NoOrphans => "no orphans",
            Self::Deletion => "deletion",
            Self::Status => "status",
            Self::TruthfulStatus => "truthful status",
            Self::Spec => "spec",
            Self::Silence => "silence",
            Self::CallRate => "call rate",
            Self::NoPanics => "no panics",
            Self::Invariant => "invariant",
            Self::NoSecrets => "no secrets",
        })
    }
}

/// Broken property of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// Name of the object; empty if it is unknown.
    pub object: String,
    /// State that was expected.
    pub expected: String,
    /// State that was found.
    pub found: String,
}

impl Violation {
    pub(crate) fn new(
        property: Property,
        object: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            property,
            object: object.to_owned(),
            expected: expected.into(),
            found: found.into(),
        }
    }
}
