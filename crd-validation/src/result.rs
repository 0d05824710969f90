//! Result of a validation by a CRD.

use json_patch::Patch;
use serde_json::Value;

use crate::field::error::aggregate;
use crate::violation::{RatchetedViolation, Violation};

/// Validation result, returned by [`CrdValidator::validate`](crate::CrdValidator::validate).
#[derive(Clone, Debug)]
pub struct ValidationResult {
    /// The object with defaults filled.
    pub object: Value,
    /// Default patch: RFC 6902 operations that turn the object as received into `object`.
    pub defaults: Patch,
    /// All errors, sorted by path; empty if the object is valid.
    pub errors: Vec<Violation>,
    /// Violations that do not make the object invalid, such as ratcheted errors, which the replaced object had
    /// too.
    pub warnings: Vec<Violation>,
    /// Identities of the ratcheted errors.
    pub ratcheted: Vec<RatchetedViolation>,
}

impl ValidationResult {
    /// Returns true if there are no errors.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns all errors as one message, in the format of the API server.
    #[must_use]
    pub fn message(&self) -> String {
        aggregate(self.errors.iter().map(|violation| &violation.error))
    }
}
