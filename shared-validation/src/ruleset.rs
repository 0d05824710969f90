//! Compiled ruleset of one kind, and the traits of validators.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::conversion::{ConversionError, Versions};
use crate::crd_status::CrdMatch;
use crate::crd_validator::{CrdValidator, ExtraLayers};
use crate::defaults::DynamicDefault;
use crate::fast_path;
use crate::field_error::ErrorType;
use crate::kind::ValidatedResource;
use crate::last_validated::RatchetedViolation;
use crate::policy::Policy;
use crate::probe;
use crate::raw::RawObject;
use crate::request::{Operation, ValidationRequest};
use crate::result::{ValidationResult, Violation};
use crate::rule::Layer;
use crate::rule_info;
use crate::rule_info::RuleInfo;
use crate::rust_rules::RustRules;
use crate::schema::{Schema, join};
use crate::settings::Settings;
use crate::structural::Scale;

/// Compile error of a ruleset. It can occur only at startup, never during a request.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The CRD has no schema for the requested version.
    #[error("the CRD has no schema for version `{version}`; add it to `spec.versions`")]
    NoSchema {
        /// The requested version.
        version: String,
    },
    /// The schema uses a keyword or value that this crate does not evaluate exactly as the API server does.
    #[error("schema at {at}: {problem}")]
    Schema {
        /// Dotted path of the schema node.
        at: String,
        /// Description of the problem.
        problem: String,
    },
    /// A CEL rule cannot be parsed or uses a function that this crate does not implement.
    #[error("CEL rule at {at}: {problem}: {rule}")]
    Cel {
        /// Dotted path of the schema node.
        at: String,
        /// Description of the problem.
        problem: String,
        /// The CEL expression.
        rule: String,
    },
}

/// Validator of one layer.
pub(crate) trait ValidationLayer: Send + Sync {
    /// Adds all errors of the object to the report.
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>);
}

/// Input of a layer.
pub(crate) struct LayerContext<'a> {
    pub(crate) operation: Operation,
    pub(crate) schema: &'a Schema,
    /// If true, the status is a subresource: it is updated separately from the object.
    pub(crate) has_status_subresource: bool,
    /// Values on which the scale subresource depends, if the kind has one.
    pub(crate) scale: Option<&'a Scale>,
    /// The object, with defaults filled.
    pub(crate) object: &'a Value,
    /// The object that is replaced, with defaults filled. Errors that it has too are ratcheted.
    pub(crate) old: Option<&'a Value>,
    /// The object with which transition rules compare.
    pub(crate) before: Option<&'a Value>,
    /// Policy that sets the actions of Rust rules.
    pub(crate) policy: Option<&'a Policy>,
    /// Related objects that rules may read.
    pub(crate) related: Option<&'a Value>,
    /// If true, the caller needs to know only whether there is any error, not which.
    pub(crate) is_enough_to_know: bool,
}

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

/// Validator for the objects of one kind, independent of its Rust type.
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
    ) -> bool {
        false
    }
    /// Fast path: returns true if no defaults are missing. If the cluster has the same CRD, the API server has
    /// already filled the static defaults.
    fn has_all_defaults(&self, _object: &RawObject<'_>, _crd: CrdMatch) -> bool {
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

/// Everything compiled for one kind: structural schema, CEL rules, Rust rules and defaults.
pub struct Ruleset<K: ValidatedResource> {
    resource: CrdValidator,
    dynamic_defaults: Vec<DynamicDefault>,
    transition_fields: BTreeSet<String>,
    typed: RustRules<K>,
    catalogue: Vec<RuleInfo>,
}

impl<K: ValidatedResource> Ruleset<K> {
    /// Compiles the ruleset of a kind. Call this once, at startup.
    ///
    /// # Errors
    ///
    /// If the schema or a CEL rule uses something that the API server would evaluate differently.
    pub fn compile() -> Result<Self, CompileError> {
        let resource = CrdValidator::compile(&K::crd(), K::VERSION)?;
        if !resource.schema.rules.is_empty() {
            // Ratcheting applies only while the value of a node is unchanged. A metadata change changes the
            // root, so an old error of a root rule would block the removal of a finalizer.
            return Err(CompileError::Schema {
                at: "the root".to_owned(),
                problem: "a CEL rule at the root of an object is not allowed; attach it to a field"
                    .to_owned(),
            });
        }
        let mut transition_fields: BTreeSet<String> = K::transition_fields()
            .iter()
            .map(|s| (*s).to_owned())
            .collect();
        // A field with a dynamic default is a transition field: an update that omits it must keep its
        // value, and transition rules must notice each change of it.
        let dynamic_defaults = K::dynamic_defaults();
        transition_fields.extend(
            dynamic_defaults
                .iter()
                .map(|default| default.field.to_owned()),
        );
        resource.schema.visit_named("", &mut |name, node| {
            for rule in node.rules.iter().filter(|rule| rule.uses_old_self) {
                if node.is_scalar() {
                    transition_fields.insert(name.to_owned());
                } else if let Some(field) = &rule.field_path
                    && node.properties.get(field).is_some_and(Schema::is_scalar)
                {
                    // The rule is attached to an object, and `fieldPath` names the field that it compares.
                    transition_fields.insert(join(name, field));
                }
            }
        });
        let mut catalogue = rule_info::of_version(
            &resource.schema,
            resource.scale.as_ref(),
            K::rule_references(),
        );
        let rules = K::rules();
        catalogue.push(probe::rule_info());
        catalogue.extend(rules.iter().map(|rule| {
            RuleInfo {
                id: rule.id.to_owned(),
                layer: Layer::Rust,
                severity: rule.severity,
                description: rule.description.to_owned(),
                reference: rule.reference.to_owned(),
                fields: rule
                    .fields
                    .iter()
                    .map(|field| (*field).to_owned())
                    .collect(),
                expression: None,
            }
        }));
        Ok(Self {
            resource,
            dynamic_defaults,
            transition_fields,
            typed: RustRules {
                rules,
                extension: None,
            },
            catalogue,
        })
    }
}

impl<K: ValidatedResource> Ruleset<K> {
    /// Sets a value that the Rust rules read with [`RuleContext::extension`](crate::RuleContext::extension): what
    /// they need besides the object, such as a cache. It must not change the result of a validation.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, extension: Arc<T>) -> Self {
        self.typed.extension = Some(extension);
        self
    }

    fn extra_layers(&self) -> ExtraLayers<'_> {
        ExtraLayers {
            dynamic_defaults: &self.dynamic_defaults,
            transition_fields: &self.transition_fields,
            rust_rules: Some(&self.typed),
        }
    }
}

impl<K: ValidatedResource> Validator for Ruleset<K> {
    fn group(&self) -> &str {
        K::GROUP
    }

    fn version(&self) -> &str {
        K::VERSION
    }

    fn kind(&self) -> &str {
        K::KIND
    }

    fn crd(&self) -> &Value {
        self.resource.crd()
    }

    fn rules(&self) -> Vec<RuleInfo> {
        self.catalogue.clone()
    }

    fn settings(&self) -> Option<Settings> {
        K::settings()
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        &self.transition_fields
    }

    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let versions = Versions {
            group: K::GROUP,
            kind: K::KIND,
            storage_version: K::VERSION,
            others: K::served_versions(),
        };
        versions.convert(object, to)
    }

    fn probe_object(&self, name: &str, namespace: &str) -> Option<Value> {
        let mut example = K::example();
        example["apiVersion"] = format!("{}/{}", K::GROUP, K::VERSION).into();
        example["kind"] = K::KIND.into();
        let namespace = self.resource.is_namespaced().then_some(namespace);
        Some(probe::probe_object(example, name, namespace))
    }

    fn default_patch(&self, request: &ValidationRequest<'_>) -> Patch {
        self.resource.default_patch(request, &self.extra_layers())
    }

    fn is_trivially_valid(
        &self,
        object: &RawObject<'_>,
        old: Option<&RawObject<'_>>,
        crd: CrdMatch,
    ) -> bool {
        let (object, old) = (object.tree(), old.map(RawObject::tree));
        fast_path::is_complete(object, &self.dynamic_defaults)
            && old.is_none_or(|old| {
                fast_path::is_as_accepted(old, &self.dynamic_defaults, &self.transition_fields)
            })
            && (crd == CrdMatch::Same || self.resource.is_trivially_valid(object, old))
            && self.typed.is_trivially_valid(object, old)
    }

    fn has_all_defaults(&self, object: &RawObject<'_>, crd: CrdMatch) -> bool {
        fast_path::is_complete(object.tree(), &self.dynamic_defaults)
            && (crd == CrdMatch::Same || self.resource.has_all_defaults(object.tree()))
    }

    fn validate(&self, request: &ValidationRequest<'_>) -> ValidationResult {
        self.resource.validate_with(request, &self.extra_layers())
    }
}
