//! What the judgement says.

use serde_json::Value;

use crate::accepted::RatchetedViolation;
use crate::field_error::{ErrorType, FieldError, aggregate};
use crate::field_path::FieldPath;
use crate::rule::Layer;

/// One rule broken at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The rule's id.
    pub rule: String,
    /// The layer that the rule is written in.
    pub layer: Layer,
    /// Where it is. The same as the error's path, except where the API server names no field in
    /// errors of this kind.
    pub at: FieldPath,
    /// What is wrong.
    pub error: FieldError,
    /// A fingerprint of all that the error depends on: while it stays the same, so does the error.
    /// Absent where an error is never inherited.
    pub inputs: Option<u64>,
    /// Whether the object would stand by itself, and does not among others.
    pub is_of_related: bool,
}

/// What [`Judge::check`](crate::Judge::check) returns.
#[derive(Clone, Debug)]
pub struct ValidationResult {
    /// The object with its defaults filled.
    pub object: Value,
    /// The defaults that were filled, as RFC 6902 `add` operations on the object as written.
    pub defaults: json_patch::Patch,
    /// Everything wrong, sorted by path; empty for a valid object.
    pub errors: Vec<Violation>,
    /// Advice, and errors that an update inherited from the object it replaces.
    pub warnings: Vec<Violation>,
    /// Violations that a policy only counts.
    pub audit_violations: Vec<Violation>,
    /// Which warnings are errors that were there before: what to remember of an object that is
    /// accepted in spite of them.
    pub ratcheted: Vec<RatchetedViolation>,
}

impl ValidationResult {
    /// Whether the object stands.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether all was judged that there is to judge: no error tells of a failure that is not the object's.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let of_any_weight = [&self.errors, &self.warnings, &self.audit_violations];
        let mut violations = of_any_weight.into_iter().flatten();
        violations.all(|violation| violation.error.error_type != ErrorType::Internal)
    }

    /// All errors as one message, as the API server would print it.
    #[must_use]
    pub fn message(&self) -> String {
        aggregate(self.errors.iter().map(|violation| &violation.error))
    }
}
