//! The rules engine: judges a custom resource against everything its kind demands.
//!
//! One [`Ruleset`] holds the three layers of a kind, compiled once: the structural schema and the
//! CEL rules of its CRD, and its Rust rules. [`Ruleset::check`] turns a [`Candidate`] into a
//! [`Verdict`], the same at the desk, at the gate and in the loop.
//!
//! Pure by construction: no I/O, no async, no clock and no Kubernetes client in the dependency tree.

mod accepted;
mod brief;
pub mod canary;
mod candidate;
mod catalogue;
mod cel;
mod completed;
mod conversion;
mod custom_resource;
mod defaults;
mod field_error;
mod field_path;
mod format;
mod go;
mod json;
mod kind;
mod meant;
mod metadata;
mod passing;
mod pointer;
mod policy;
mod re2;
mod registry;
mod rule;
mod ruleset;
mod schema;
mod settings;
mod sighting;
mod structural;
mod transition;
mod typed;
mod unknown_fields;
mod verdict;
mod written;

pub use accepted::{LastValidated, RatchetedViolation};
pub use candidate::{Operation, UnknownFields, ValidationRequest};
pub use catalogue::RuleInfo;
pub use completed::with_standard_fields;
pub use conversion::{ConversionError, VersionMapping};
pub use custom_resource::CrdValidator;
pub use defaults::DynamicDefault;
pub use field_error::{BadValue, ErrorType, FieldError, aggregate};
pub use field_path::FieldPath;
pub use json::ParsedJson;
pub use kind::ValidatedResource;
pub use meant::did_you_mean;
pub use policy::{Action, Policy, PolicyError, PolicyHandle};
pub use registry::ValidatorRegistry;
pub use rule::{Diagnostics, Layer, Rule, RuleContext, Severity};
pub use ruleset::{CompileError, Ruleset, Validator};
pub use settings::Settings;
pub use sighting::{CrdMatch, CrdStatus, CrdStatusReport};
pub use typed::decode;
pub use verdict::{ValidationResult, Violation};
pub use written::RawObject;
