//! Interface of all validators.

use std::collections::BTreeSet;

use crd_validation::CompileError;
use crd_validation::conversion::{ConversionError, Versions};
use crd_validation::json::RawObject;
use json_patch::Patch;
use serde_json::Value;

use crate::crd_match::CrdMatch;
use crate::policy::Policy;
use crate::request::ValidationRequest;
use crate::result::ValidationResult;
use crate::rule_info::RuleInfo;
use crate::settings::Settings;

/// Validator for the objects of one kind, independent of its Rust type.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use serde_json::json;
/// use lockstep_shared_validation::{CrdValidator, ValidationRequest, Validator, ValidatorRegistry};
///
/// let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}, "required": ["spec"]});
/// let crd = json!({"spec": {
///     "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
///     "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
/// }});
/// let validator: Arc<dyn Validator> = Arc::new(CrdValidator::compile(&crd, "v1")?);
/// let registry = ValidatorRegistry::default().register(validator);
///
/// let validator = registry.get("example.com", "Widget").expect("the kind is registered");
/// let widget = json!({});
/// let result = validator.validate(&ValidationRequest::create(&widget));
/// assert_eq!(result.message(), "spec: Required value");
/// # Ok::<(), lockstep_shared_validation::CompileError>(())
/// ```
pub trait Validator: Send + Sync {
    /// Returns the API group.
    fn group(&self) -> &str;
    /// Returns the API version that is validated.
    fn version(&self) -> &str;
    /// Returns the kind.
    fn kind(&self) -> &str;
    /// Returns the `CustomResourceDefinition`.
    fn crd(&self) -> &Value;
    /// Returns all rules, sorted by layer and id.
    fn rules(&self) -> Vec<RuleInfo>;
    /// Returns the policy settings section that the rules read, if any.
    fn settings(&self) -> Option<Settings> {
        None
    }
    /// Returns the transition fields: the fields whose last validated values the controller stores.
    fn transition_fields(&self) -> &BTreeSet<String>;
    /// Returns false if the rules are going to be compiled for the first object, which takes long.
    fn is_compiled(&self) -> bool {
        true
    }
    /// Compiles the rules now, unless they are compiled.
    fn ensure_compiled(&self) -> Result<(), &CompileError> {
        Ok(())
    }
    /// Validates an object.
    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult;
    /// Returns the default patch for an object.
    fn default_patch(&self, request: &ValidationRequest<'_>) -> Patch {
        self.validate(request).defaults
    }
    /// Fast path: returns true if the object is valid, needs no defaults and causes no warnings. This covers
    /// all layers, or only the Rust rules if the API server has already validated the object with the same CRD.
    ///
    /// `false` does not mean that the object is invalid. Call [`validate`](Self::validate) to find out.
    fn is_trivially_valid(
        &self,
        _object: &RawObject<'_>,
        _old: Option<&RawObject<'_>>,
        _crd: CrdMatch,
        _policy: &Policy,
    ) -> bool {
        false
    }
    /// Fast path: returns true if no defaults are missing. If the cluster has the same CRD, the API server has
    /// already filled the static defaults.
    fn has_all_defaults(
        &self,
        _object: &RawObject<'_>,
        _old: Option<&RawObject<'_>>,
        _crd: CrdMatch,
    ) -> bool {
        false
    }
    /// Converts an object of this kind to another version, given as in `apiVersion`.
    ///
    /// # Errors
    ///
    /// If the kind has no such version.
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let only = Versions {
            group: self.group(),
            kind: self.kind(),
            storage_version: self.version(),
            others: Vec::new(),
        };
        only.convert(object, to)
    }
    /// Returns an object for an [admission probe](crate::probe): it is valid except for the probe annotation.
    /// `None` if the kind has no example.
    fn probe_object(&self, _name: &str, _namespace: &str) -> Option<Value> {
        None
    }
}
