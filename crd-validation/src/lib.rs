//! Validation of custom resources as the API server validates them, for any CRD.
//!
//! The crate reproduces what `kube-apiserver` does with an object of a CRD: it fills the defaults of the structural
//! schema, validates the object by the schema and by the CEL rules (`x-kubernetes-validations`), and ratchets errors
//! that an update did not introduce. Errors have the types, paths and texts of the API server.
//!
//! The crate is pure: no I/O, no async, no clock and no Kubernetes client in the dependency tree (`tests/pure.rs` of
//! shared-validation checks this).
//!
//! The concepts, in reading order:
//!
//! 1. [`CrdValidator`]: one version of a CRD, compiled. A CRD that uses something that the crate would evaluate
//!    differently than the API server does not compile ([`CompileError`]).
//! 2. [`Request`]: the object to validate, and the object that it replaces. [`json`] parses objects: with duplicate
//!    fields ([`json::ParsedJson`]), or without copying strings ([`json::RawObject`]).
//! 3. [`ValidationResult`]: the object with defaults, the default patch, and the errors and warnings as
//!    [`Violation`]s. Each names its rule and contains a [`FieldError`] at a [`FieldPath`].
//! 4. Ratcheting: an error that the replaced object has too is a warning. [`RatchetedViolation`] identifies such an
//!    error across updates, and [`RatchetedViolations`] all those of an object, in bounded space.
//! 5. [`CrdRule`]: one rule of a CRD, for lists of all rules.
//! 6. [`Report`]: the violations found so far, for crates that add rules to those of the CRD. It is [`Bounded`]: it keeps the
//!    first [`MAX_REPORTED`] errors and warnings each, and knows whether there are more.
//! 7. [`conversion`]: conversion between the versions of a CRD whose fields have different names.

mod bounded;
mod cel;
mod compile_error;
pub mod conversion;
mod correlation;
mod crd_validator;
mod defaults;
pub mod field;
pub mod format;
mod identities;
pub mod json;
mod layer;
mod metadata;
mod ratcheted;
mod re2;
mod report;
mod request;
mod result;
mod rules;
mod schema;
mod structural;
pub mod suggest;
mod unknown_fields;
mod violation;

pub use bounded::{AND_MORE, Bounded, MAX_REPORTED, Reported, max_reported, report_all};
pub use compile_error::CompileError;
pub use crd_validator::CrdValidator;
pub use field::{ErrorType, FieldError, FieldPath};
pub use identities::{Identities, MAX_FILTER_TEXT_BYTES, RatchetedFilter, identity};
pub use ratcheted::RatchetedViolations;
pub use report::Report;
pub use request::{Request, UnknownFields};
pub use result::ValidationResult;
pub use rules::CrdRule;
pub use schema::unknown_keywords::unknown_keywords;
pub use violation::{Layer, RatchetedViolation, Violation, fingerprint};
