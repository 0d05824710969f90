//! Report: the violations that the CRD and the Rust rules have found so far.

use std::cmp::Ordering;

use crd_validation::RatchetedViolation;
use json_patch::PatchOperation;
use serde_json::Value;

use crate::result::{ValidationResult, Violation};

/// Collected violations of all layers.
pub(crate) struct Report<'a> {
    errors: Vec<Violation>,
    warnings: Vec<Violation>,
    audited: Vec<Violation>,
    ratcheted: Vec<RatchetedViolation>,
    /// Identities of errors that were ratcheted in an earlier validation of the object.
    known: &'a [RatchetedViolation],
}

impl<'a> Report<'a> {
    /// Creates a report from what the CRD reports.
    pub(crate) fn new(crd: crd_validation::Report<'_>, known: &'a [RatchetedViolation]) -> Self {
        Self {
            errors: crd.errors.into_iter().map(Violation::from).collect(),
            warnings: crd.warnings.into_iter().map(Violation::from).collect(),
            audited: Vec::new(),
            ratcheted: crd.ratcheted,
            known,
        }
    }

    /// Adds an error. If the old object had it too, it becomes a warning.
    pub(crate) fn deny_or_ratchet(&mut self, violation: Violation, inherited: bool) {
        let known = !self.known.is_empty()
            && violation
                .identity()
                .is_some_and(|identity| self.known.contains(&identity));
        if inherited || known {
            self.record_ratcheted(&violation);
            self.warn(violation);
        } else {
            self.errors.push(violation);
        }
    }

    /// Records the identity of a ratcheted error.
    pub(crate) fn record_ratcheted(&mut self, violation: &Violation) {
        self.ratcheted.extend(violation.identity());
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
        self.ratcheted.sort();
        self.ratcheted.dedup();
        ValidationResult {
            object,
            defaults: json_patch::Patch(operations),
            errors: self.errors,
            warnings: self.warnings,
            audit_violations: self.audited,
            ratcheted: self.ratcheted,
        }
    }
}

/// Orders violations by field. Those of one text are in the order of the text; those of the whole text come last.
fn order(a: &Violation, b: &Violation) -> Ordering {
    let start = |violation: &Violation| {
        let span = violation.error.span.as_ref();
        span.map_or(usize::MAX, |bytes| bytes.start)
    };
    let by_location = (&a.at, a.layer, start(a)).cmp(&(&b.at, b.layer, start(b)));
    by_location.then_with(|| a.error.body().cmp(&b.error.body()))
}
