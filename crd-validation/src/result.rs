//! Result of a validation by a CRD.

use json_patch::Patch;
use serde_json::Value;

use crate::field::error::aggregate;
use crate::ratcheted::RatchetedViolations;
use crate::violation::Violation;

/// Validation result, returned by [`CrdValidator::validate`](crate::CrdValidator::validate).
#[derive(Clone, Debug)]
pub struct ValidationResult {
    /// The object with defaults filled.
    pub object: Value,
    /// Default patch: RFC 6902 operations that turn the object as received into `object`.
    pub defaults: Patch,
    /// Errors, sorted by path; empty if the object is valid. At most [`MAX_REPORTED`](crate::MAX_REPORTED).
    pub errors: Vec<Violation>,
    /// If true, there are more errors.
    pub has_more_errors: bool,
    /// Violations that do not make the object invalid, such as ratcheted errors, which the replaced object had
    /// too. At most [`MAX_REPORTED`](crate::MAX_REPORTED).
    pub warnings: Vec<Violation>,
    /// If true, there are more such violations.
    pub has_more_warnings: bool,
    /// The ratcheted errors.
    pub ratcheted: RatchetedViolations,
}

impl ValidationResult {
    /// Returns true if there are no errors.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns the errors as one message, in the format of the API server.
    #[must_use]
    pub fn message(&self) -> String {
        let errors = self.errors.iter().map(|violation| &violation.error);
        aggregate(errors, self.has_more_errors)
    }
}
