//! Validation result.

use std::cmp::Ordering;

use crd_validation::field::aggregate;
use crd_validation::{
    AND_MORE, ErrorType, FieldError, FieldPath, RatchetedViolation, RatchetedViolations, Reported,
    identity,
};
use serde_json::Value;

use crate::rule::Layer;

/// Violation of one rule at one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Id of the rule.
    pub rule: String,
    /// Layer in which the rule is written.
    pub layer: Layer,
    /// Path of the field. It equals the path of the error, except for error types for which the API server
    /// names no field.
    pub at: FieldPath,
    /// The error.
    pub error: FieldError,
    /// Fingerprint of all values that the error depends on. The error stays the same while the fingerprint
    /// does. `None` if the error is never ratcheted.
    pub inputs: Option<u64>,
    /// If true, the object is valid alone but conflicts with related objects.
    pub is_of_related: bool,
}

impl Violation {
    /// Creates the entry at the end of a list, if there are more violations than are shown.
    pub fn and_more(has_more: bool) -> Option<Self> {
        has_more.then(|| Self {
            rule: "and-more".to_owned(),
            layer: Layer::Schema,
            at: FieldPath::root(),
            error: FieldError::invalid_hidden(FieldPath::root(), AND_MORE),
            inputs: None,
            is_of_related: false,
        })
    }

    /// Returns the identity under which the error is ratcheted, or `None` if it never is.
    pub(crate) fn ratcheted(&self) -> Option<RatchetedViolation> {
        let inputs = self.inputs?;
        Some(RatchetedViolation::new(&self.rule, &self.at, inputs))
    }

    /// Returns true if the error was ratcheted in an earlier validation, and its inputs have not changed.
    pub(crate) fn is_among(&self, known: &RatchetedViolations) -> bool {
        let was_there = |inputs| known.contains(&self.rule, &self.at, inputs);
        self.inputs.is_some_and(was_there)
    }
}

/// Orders violations by field. Those of one text are in the order of the text; those of the whole text come last.
impl Reported for Violation {
    fn order(&self, other: &Self) -> Ordering {
        let start = |violation: &Self| {
            let span = violation.error.span.as_ref();
            span.map_or(usize::MAX, |bytes| bytes.start)
        };
        let by_location =
            (&self.at, self.layer, start(self)).cmp(&(&other.at, other.layer, start(other)));
        by_location.then_with(|| self.error.body().cmp(&other.error.body()))
    }

    fn is_internal(&self) -> bool {
        self.error.error_type == ErrorType::Internal
    }

    fn identity(&self) -> Option<u64> {
        let inputs = self.inputs?;
        Some(identity(&self.rule, &self.at, inputs))
    }
}

impl From<crd_validation::Violation> for Violation {
    fn from(violation: crd_validation::Violation) -> Self {
        Self {
            rule: violation.rule,
            layer: violation.layer.into(),
            at: violation.at,
            error: violation.error,
            inputs: violation.inputs,
            is_of_related: false,
        }
    }
}

/// Validation result, returned by [`Validator::validate`](crate::Validator::validate).
///
/// ```
/// use lockstep_shared_validation::{CrdValidator, ValidationRequest, Validator};
/// use serde_json::json;
///
/// let size = json!({"type": "integer", "minimum": 1, "default": 3});
/// let spec = json!({"type": "object", "properties": {"size": size}});
/// let schema = json!({"type": "object", "properties": {"spec": spec}});
/// let crd = json!({"spec": {
///     "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
///     "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
/// }});
/// let validator = CrdValidator::compile(&crd, "v1")?;
///
/// let object = json!({"spec": {}});
/// let result = validator.validate(&ValidationRequest::create(&object));
/// assert!(result.is_valid());
/// assert_eq!(result.object, json!({"spec": {"size": 3}}));
///
/// let object = json!({"spec": {"size": 0}});
/// let result = validator.validate(&ValidationRequest::create(&object));
/// assert_eq!(result.errors[0].rule, "spec.size/minimum");
/// # Ok::<(), lockstep_shared_validation::CompileError>(())
/// ```
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says something else about the result"
)]
#[derive(Clone, Debug)]
pub struct ValidationResult {
    /// The object with defaults filled.
    pub object: Value,
    /// Default patch: RFC 6902 operations that turn the object as received into `object`.
    pub defaults: json_patch::Patch,
    /// Errors, sorted by path; empty if the object is valid. At most [`MAX_REPORTED`](crate::MAX_REPORTED).
    pub errors: Vec<Violation>,
    /// If true, there are more errors.
    pub has_more_errors: bool,
    /// Violations that do not make the object invalid: of rules with severity warning, and ratcheted errors,
    /// which the replaced object had too. At most [`MAX_REPORTED`](crate::MAX_REPORTED).
    pub warnings: Vec<Violation>,
    /// If true, there are more such violations.
    pub has_more_warnings: bool,
    /// Violations of rules that the policy sets to `audit`. At most [`MAX_REPORTED`](crate::MAX_REPORTED).
    pub audit_violations: Vec<Violation>,
    /// If true, there are more such violations.
    pub has_more_audit_violations: bool,
    /// If true, one of the violations reports an internal error, even if it is not among those that are kept.
    pub has_internal_errors: bool,
    /// The ratcheted errors. The controller stores them with the last validated values.
    pub ratcheted: RatchetedViolations,
}

impl ValidationResult {
    /// Returns true if there are no errors.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns true if validation was complete: no violation reports an internal error, which the object did
    /// not cause.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let of_any_weight = [&self.errors, &self.warnings, &self.audit_violations];
        let mut violations = of_any_weight.into_iter().flatten();
        !self.has_internal_errors && violations.all(|violation| !violation.is_internal())
    }

    /// Returns the errors as one message, in the format of the API server. It ends with
    /// [`AND_MORE`] if there are more, or if there is no room for all.
    #[must_use]
    pub fn message(&self) -> String {
        let errors = self.errors.iter().map(|violation| &violation.error);
        aggregate(errors, self.has_more_errors)
    }
}
