//! Report: the violations that the layers have found so far.

use std::cmp::Ordering;

use json_patch::PatchOperation;
use serde_json::Value;

use crate::field::error::{ErrorType, FieldError};
use crate::field::path::Cursor;
use crate::result::ValidationResult;
use crate::violation::{RatchetedViolation, Violation};

/// Collected violations of all layers.
#[derive(Debug, Default)]
pub struct Report<'a> {
    /// Errors, in the order in which they were found.
    pub errors: Vec<Violation>,
    /// Violations that do not make the object invalid.
    pub warnings: Vec<Violation>,
    /// Identities of the errors that are warnings because the old object had them too.
    pub ratcheted: Vec<RatchetedViolation>,
    /// Identities of errors that were ratcheted in an earlier validation of the object.
    known: &'a [RatchetedViolation],
}

impl<'a> Report<'a> {
    /// Creates an empty report. `known` are the errors that were ratcheted in an earlier validation of the object:
    /// they are warnings, too.
    #[must_use]
    pub fn new(known: &'a [RatchetedViolation]) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Adds an error. If the old object had it too, it becomes a warning.
    pub(crate) fn deny_or_ratchet(&mut self, violation: Violation, inherited: bool) {
        let known = !self.known.is_empty()
            && RatchetedViolation::of(&violation)
                .is_some_and(|identity| self.known.contains(&identity));
        if inherited || known {
            self.ratcheted.extend(RatchetedViolation::of(&violation));
            self.warn(violation);
        } else {
            self.errors.push(violation);
        }
    }

    /// Adds an error of the schema layer that is never ratcheted.
    pub(crate) fn deny(&mut self, keyword: &str, at: Cursor<'_>, error: FieldError) {
        self.deny_or_ratchet(Violation::of_schema(keyword, at, error), false);
    }

    /// Adds a warning of the schema layer: the API server accepts the object, but ignores something in it.
    pub(crate) fn advise(&mut self, keyword: &str, at: Cursor<'_>, error: FieldError) {
        self.warn(Violation::of_schema(keyword, at, error));
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, violation: Violation) {
        self.warnings.push(violation);
    }

    /// Returns true if no violation of any severity was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.warnings.is_empty()
    }

    /// Builds the validation result from the defaulted object and the operations that filled its defaults.
    #[must_use]
    pub fn into_result(
        mut self,
        object: Value,
        operations: Vec<PatchOperation>,
    ) -> ValidationResult {
        self.errors.sort_by(order);
        self.warnings.sort_by(order);
        self.ratcheted.sort();
        self.ratcheted.dedup();
        ValidationResult {
            object,
            defaults: json_patch::Patch(operations),
            errors: self.errors,
            warnings: self.warnings,
            ratcheted: self.ratcheted,
        }
    }

    /// Returns true if the API server would skip CEL rules because of the errors so far.
    pub(crate) fn blocks_cel(&self) -> bool {
        self.errors.iter().any(|violation| {
            matches!(
                violation.error.error_type,
                ErrorType::NotSupported
                    | ErrorType::Required
                    | ErrorType::TooLong
                    | ErrorType::TooMany
                    | ErrorType::TypeInvalid
            )
        })
    }
}

fn order(a: &Violation, b: &Violation) -> Ordering {
    let by_location = (&a.at, a.layer).cmp(&(&b.at, b.layer));
    by_location.then_with(|| a.error.body().cmp(&b.error.body()))
}
