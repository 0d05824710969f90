//! Report: the violations that the layers have found so far.

use std::cmp::Ordering;

use json_patch::PatchOperation;
use serde_json::Value;

use crate::field_error::{ErrorType, FieldError};
use crate::field_path::Cursor;
use crate::last_validated::RatchetedViolation;
use crate::result::{ValidationResult, Violation};
use crate::rule::Layer;

/// Collected violations of all layers.
#[derive(Default)]
pub(crate) struct Report<'a> {
    errors: Vec<Violation>,
    warnings: Vec<Violation>,
    audited: Vec<Violation>,
    inherited: Vec<RatchetedViolation>,
    /// Identities of errors that were ratcheted in an earlier validation of the object.
    known: &'a [RatchetedViolation],
}

impl<'a> Report<'a> {
    pub(crate) fn new(known: &'a [RatchetedViolation]) -> Self {
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
            self.record_ratcheted(&violation);
            self.warn(violation);
        } else {
            self.errors.push(violation);
        }
    }

    /// Adds an error of the schema layer that is never ratcheted.
    pub(crate) fn deny(&mut self, keyword: &str, at: Cursor<'_>, error: FieldError) {
        let violation = Violation {
            rule: format!("{}/{keyword}", at.to_pattern()),
            layer: Layer::Schema,
            at: at.to_path(),
            error,
            inputs: None,
            is_of_related: false,
        };
        self.deny_or_ratchet(violation, false);
    }

    /// Records the identity of a ratcheted error.
    pub(crate) fn record_ratcheted(&mut self, violation: &Violation) {
        self.inherited.extend(RatchetedViolation::of(violation));
    }

    pub(crate) fn warn(&mut self, violation: Violation) {
        self.warnings.push(violation);
    }

    /// Turns all errors so far into warnings, because the CRD in the cluster differs from the compiled one.
    pub(crate) fn downgrade_errors_to_warnings(&mut self) {
        self.warnings.append(&mut self.errors);
    }

    pub(crate) fn audit(&mut self, violation: Violation) {
        self.audited.push(violation);
    }

    /// Returns true if no violation of any severity was found.
    pub(crate) fn is_empty(&self) -> bool {
        let found = [&self.errors, &self.warnings, &self.audited];
        found.into_iter().all(Vec::is_empty)
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Builds the validation result from the defaulted object and the operations that filled its defaults.
    pub(crate) fn into_result(
        mut self,
        object: Value,
        operations: Vec<PatchOperation>,
    ) -> ValidationResult {
        self.errors.sort_by(order);
        self.warnings.sort_by(order);
        self.audited.sort_by(order);
        self.inherited.sort();
        self.inherited.dedup();
        ValidationResult {
            object,
            defaults: json_patch::Patch(operations),
            errors: self.errors,
            warnings: self.warnings,
            audit_violations: self.audited,
            ratcheted: self.inherited,
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
    let by_place = (&a.at, a.layer).cmp(&(&b.at, b.layer));
    by_place.then_with(|| a.error.body().cmp(&b.error.body()))
}
