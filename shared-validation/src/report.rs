//! Report: the violations that the CRD and the Rust rules have found so far.

use crd_validation::{Bounded, RatchetedViolations};
use json_patch::PatchOperation;
use serde_json::Value;

use crate::result::{ValidationResult, Violation};

/// Collected violations of all layers.
pub(crate) struct Report<'a> {
    errors: Bounded<Violation>,
    warnings: Bounded<Violation>,
    audited: Bounded<Violation>,
    /// Errors that were ratcheted in an earlier validation of the object.
    known: Option<&'a RatchetedViolations>,
}

impl<'a> Report<'a> {
    /// Creates a report from what the CRD reports.
    pub(crate) fn new(
        crd: crd_validation::Report<'_>,
        known: Option<&'a RatchetedViolations>,
    ) -> Self {
        Self {
            errors: crd.errors.map(Violation::from),
            warnings: crd.warnings.map(Violation::from),
            audited: Bounded::default(),
            known,
        }
    }

    /// Returns the errors that were ratcheted in an earlier validation of the object.
    pub(crate) fn known(&self) -> Option<&'a RatchetedViolations> {
        self.known
    }

    /// Adds an error that no rule reports. If the old object had it too, it becomes a warning.
    pub(crate) fn deny_or_ratchet(&mut self, violation: Violation, inherited: bool) {
        if inherited || self.known.is_some_and(|known| violation.is_among(known)) {
            self.warnings.push(violation);
        } else {
            self.errors.push(violation);
        }
    }

    /// Adds errors.
    pub(crate) fn deny_all(&mut self, violations: Bounded<Violation>) {
        self.errors.append(violations);
    }

    /// Adds violations that do not make the object invalid.
    pub(crate) fn ratchet_all(&mut self, violations: Bounded<Violation>) {
        self.warnings.append(violations);
    }

    /// Adds violations that the policy only audits.
    pub(crate) fn audit_all(&mut self, violations: Bounded<Violation>) {
        self.audited.append(violations);
    }

    /// Turns all errors so far into warnings, because the CRD in the cluster differs from the compiled one.
    pub(crate) fn downgrade_errors_to_warnings(&mut self) {
        self.warnings.append(std::mem::take(&mut self.errors));
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
        let of_any_weight = [&self.errors, &self.warnings, &self.audited];
        let has_internal_errors = of_any_weight.into_iter().any(Bounded::has_internal);
        let mut ratcheted = self.warnings.take_identities();
        ratcheted.append(self.audited.take_identities());
        let (errors, has_more_errors) = self.errors.into_sorted();
        let (warnings, has_more_warnings) = self.warnings.into_sorted();
        let (audit_violations, has_more_audit_violations) = self.audited.into_sorted();
        let shown = warnings.iter().chain(&audit_violations);
        let shown = shown.filter_map(Violation::ratcheted);
        let ratcheted = RatchetedViolations::new(ratcheted, shown);
        ValidationResult {
            object,
            defaults: json_patch::Patch(operations),
            errors,
            has_more_errors,
            warnings,
            has_more_warnings,
            audit_violations,
            has_more_audit_violations,
            has_internal_errors,
            ratcheted,
        }
    }
}

#[cfg(test)]
mod tests {
    use crd_validation::{FieldError, FieldPath};

    use super::*;
    use crate::rule::Layer;

    #[test]
    fn a_validation_is_incomplete_even_if_its_internal_error_is_not_kept() {
        let mut report = Report::new(crd_validation::Report::default(), None);
        let mut deny = |error: FieldError| {
            let violation = Violation {
                rule: "rule".to_owned(),
                layer: Layer::Rust,
                at: error.path.clone(),
                error,
                inputs: None,
                is_of_related: false,
            };
            report.deny_or_ratchet(violation, false);
        };
        for index in 0..1000 {
            let path = FieldPath::new("spec").index(index);
            deny(FieldError::invalid_hidden(path, "is wrong"));
        }
        deny(FieldError::internal(FieldPath::new("status"), "failed"));
        let result = report.into_result(Value::Null, Vec::new());
        let message = result.message();
        assert!(
            result.has_more_errors && !message.contains("failed"),
            "{message}"
        );
        assert!(!result.is_complete());
    }
}
