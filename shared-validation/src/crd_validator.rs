//! Validator for CRDs without Rust rules.

use std::collections::BTreeSet;

use crd_validation::CompileError;
use serde_json::Value;

use crate::request::ValidationRequest;
use crate::result::ValidationResult;
use crate::rule_info::RuleInfo;
use crate::validation::Validation;
use crate::validator::Validator;

/// Validator for one version of a kind, based only on its CRD: the structural schema and the CEL rules. It is
/// [`crd_validation::CrdValidator`] with the interface of all validators.
///
/// Kinds with Rust rules use [`Ruleset`](crate::Ruleset); all other CRDs use this type.
pub struct CrdValidator {
    crd: crd_validation::CrdValidator,
    no_fields: BTreeSet<String>,
}

impl CrdValidator {
    /// Compiles one version of a CRD.
    ///
    /// # Errors
    ///
    /// If the CRD has no such version, or uses something that the API server would evaluate differently.
    pub fn compile(crd: &Value, version: &str) -> Result<Self, CompileError> {
        crd_validation::CrdValidator::compile(crd, version).map(Self::from)
    }

    /// Compiles all served versions of a CRD.
    ///
    /// # Errors
    ///
    /// The errors of [`compile`](Self::compile); also if no version is served.
    pub fn compile_served(crd: &Value) -> Result<Vec<Self>, CompileError> {
        let served = crd_validation::CrdValidator::compile_served(crd)?;
        Ok(served.into_iter().map(Self::from).collect())
    }
}

impl From<crd_validation::CrdValidator> for CrdValidator {
    fn from(crd: crd_validation::CrdValidator) -> Self {
        Self {
            crd,
            no_fields: BTreeSet::new(),
        }
    }
}

impl Validator for CrdValidator {
    fn group(&self) -> &str {
        self.crd.group()
    }

    fn version(&self) -> &str {
        self.crd.version()
    }

    fn kind(&self) -> &str {
        self.crd.kind()
    }

    fn crd(&self) -> &Value {
        self.crd.crd()
    }

    fn rules(&self) -> Vec<RuleInfo> {
        let rules = self.crd.rules().into_iter();
        rules.map(|rule| RuleInfo::of_crd(rule, &[])).collect()
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        &self.no_fields
    }

    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        let validation = Validation {
            crd: &self.crd,
            dynamic_defaults: &[],
            transition_fields: &self.no_fields,
            rust_rules: None,
        };
        validation.validate(request)
    }
}
