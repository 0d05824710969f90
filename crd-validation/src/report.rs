//! Report: the violations that the layers have found so far.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::bounded::Bounded;
use crate::field::error::{ErrorType, FieldError};
use crate::field::path::Cursor;
use crate::ratcheted::RatchetedViolations;
use crate::result::ValidationResult;
use crate::violation::{RatchetedViolation, Violation};

/// Collected violations of all layers. Memory is bounded: beyond [`MAX_REPORTED`](crate::MAX_REPORTED) errors or warnings, the report only knows
/// that there are more.
#[derive(Debug, Default)]
pub struct Report<'a> {
    /// Errors.
    pub errors: Bounded<Violation>,
    /// Violations that do not make the object invalid. Those that have an identity are ratcheted.
    pub warnings: Bounded<Violation>,
    /// Errors that were ratcheted in an earlier validation of the object.
    known: Option<&'a RatchetedViolations>,
    /// If true, the API server would skip CEL rules because of the errors so far.
    blocks_cel: bool,
}

impl<'a> Report<'a> {
    /// Creates an empty report. `known` are the errors that were ratcheted in an earlier validation of the object:
    /// they are warnings, too.
    #[must_use]
    pub fn new(known: Option<&'a RatchetedViolations>) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Returns the errors that were ratcheted in an earlier validation of the object.
    pub(crate) fn known(&self) -> Option<&'a RatchetedViolations> {
        self.known
    }

    /// Adds an error. If the old object had it too, it becomes a warning.
    pub(crate) fn deny_or_ratchet(&mut self, violation: Violation, inherited: bool) {
        if inherited
            || self
                .known
                .is_some_and(|known| known.contains_violation(&violation))
        {
            self.warn(violation);
        } else {
            self.blocks_cel |= blocks_cel(&violation);
            self.errors.push(violation);
        }
    }

    /// Adds errors that are not known from an earlier validation. If `blocks_cel` is true, the API server skips CEL rules
    /// because of one of them, which may be among those that are not kept.
    pub(crate) fn deny_all(&mut self, violations: Bounded<Violation>, blocks_cel: bool) {
        self.blocks_cel |= blocks_cel;
        self.errors.append(violations);
    }

    /// Adds errors that the old object had too, or that were ratcheted in an earlier validation.
    pub(crate) fn ratchet_all(&mut self, violations: Bounded<Violation>) {
        self.warnings.append(violations);
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
        let ratcheted = self.warnings.take_identities();
        let (errors, has_more_errors) = self.errors.into_sorted();
        let (warnings, has_more_warnings) = self.warnings.into_sorted();
        let shown = warnings.iter().filter_map(RatchetedViolation::of);
        let ratcheted = RatchetedViolations::new(ratcheted, shown);
        ValidationResult {
            object,
            defaults: json_patch::Patch(operations),
            errors,
            has_more_errors,
            warnings,
            has_more_warnings,
            ratcheted,
        }
    }

    /// Returns true if the API server would skip CEL rules because of the errors so far.
    pub(crate) fn blocks_cel(&self) -> bool {
        self.blocks_cel
    }
}

/// Returns true if the API server skips CEL rules because of this error.
pub(crate) fn blocks_cel(violation: &Violation) -> bool {
    matches!(
        violation.error.error_type,
        ErrorType::NotSupported
            | ErrorType::Required
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::TypeInvalid
    )
}
