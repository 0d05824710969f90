//! Validation of custom resources, shared by the admission webhook, the controller and the `lockstep check`
//! command.
//!
//! All three call the same code, so an object gets the same result everywhere. The rules of a CRD are evaluated by
//! [`crd_validation`]; this crate adds the rules in Rust, policies, defaults that depend on other fields, and the last
//! validated values. The crate is pure by construction: no I/O, no async, no clock and no Kubernetes client in the
//! dependency tree (`tests/pure.rs` checks this).
//!
//! The concepts, in reading order:
//!
//! 1. [`ValidatedResource`]: the trait that a custom resource type implements. It provides the CRD, an example and the
//!    rules.
//! 2. Layers ([`Layer`]): the three places where a rule is written. These are the CRD's structural schema, its
//!    CEL rules (`x-kubernetes-validations`), and Rust for everything that neither of the two can express.
//! 3. [`Rule`]: one rule of the Rust layer, with a stable id, one descriptive sentence, a severity and a
//!    source. Its check function reads a [`RuleContext`] and reports [`FieldError`]s to [`Diagnostics`].
//! 4. [`Ruleset`]: everything compiled for one kind: schema, CEL rules, Rust rules and defaults.
//!    [`CrdValidator`] is the counterpart for a CRD without Rust rules. Both implement [`Validator`];
//!    [`ValidatorRegistry`] is the registry of all kinds.
//! 5. [`ValidationRequest`]: the validation request. It contains the object, the operation, the old object and the
//!    context.
//! 6. [`ValidationResult`]: the validation result, returned by [`Validator::validate`]. It contains the defaulted
//!    object, the default patch, and the errors and warnings as [`Violation`]s.
//! 7. Ratcheting: an error that an update did not introduce is reported as a warning, so a new, stricter rule
//!    does not block unrelated changes to stored objects. [`RatchetedViolations`] are such errors of an object, as
//!    they are known across updates.
//! 8. [`LastValidated`]: the last validated values, which the controller stores in `status`. Transition rules
//!    compare with them, so they also hold if the webhook was down.
//! 9. [`Policy`]: the settings of one installation: deny, warn or audit for each Rust rule, and the
//!    [`Settings`] sections that rules read.
//! 10. [`CrdMatch`]: the CRD status. It states whether the CRD in the cluster equals the compiled one, and so
//!     whether the API server has already run the first two layers.

pub mod crd_match;
mod crd_validator;
mod defaults;
mod fast_path;
pub mod field_names;
mod found_errors;
mod kind;
pub mod last_validated;
mod layer;
mod nesting;
mod operation;
pub mod policy;
pub mod probe;
mod registry;
mod report;
pub mod request;
pub mod result;
pub mod rule;
mod rule_info;
mod ruleset;
mod rust_rules;
mod settings;
mod standard_fields;
mod validation;
mod validator;

/// Items that the derive macros use.
#[doc(hidden)]
pub mod private {
    pub use serde_json::{Value, to_value};
}

use crd_validation::format;

pub use crate::crd_match::{CrdMatch, crd_fingerprint};
pub use crate::crd_validator::CrdValidator;
pub use crate::rule_info::RuleInfo;
pub use crate::rust_rules::decode;
pub use crate::standard_fields::{with_optional_spec, with_standard_fields};
pub use crd_validation::conversion::{ConversionError, STORED_SPEC_PREFIX, VersionMapping};
pub use crd_validation::field::{
    BadValue, ErrorType, FieldError, FieldPath, LazyPath, MAX_MESSAGE_BYTES, aggregate, shortened,
};
pub use crd_validation::format::{is_label_value, is_qualified_name};
pub use crd_validation::json::{ParsedJson, RawMetadata, RawObject, Tree};
pub use crd_validation::suggest::{did_you_mean, similar_names};
pub use crd_validation::{
    AND_MORE, CompileError, MAX_REPORTED, RatchetedViolation, RatchetedViolations, max_reported,
    report_all, unknown_keywords,
};
pub use defaults::DynamicDefault;
pub use field_names::FieldNames;
pub use kind::ValidatedResource;
pub use last_validated::LastValidated;
pub use lockstep_derive::{FieldNames, ValidatedResource};
pub use operation::Operation;
pub use policy::{Action, Policy, PolicyError, PolicyHandle};
pub use registry::ValidatorRegistry;
pub use request::{UnknownFields, ValidationRequest};
pub use result::{ValidationResult, Violation};
pub use rule::{Diagnostics, Layer, Rule, RuleContext, Severity};
pub use ruleset::Ruleset;
pub use settings::Settings;
pub use validator::Validator;
