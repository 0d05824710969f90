//! Everything compiled for one kind, and the judgement itself.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::accepted::RatchetedViolation;
use crate::canary;
use crate::candidate::{Operation, ValidationRequest};
use crate::catalogue::{self, RuleInfo};
use crate::conversion::{ConversionError, Versions};
use crate::custom_resource::{CrdValidator, ExtraLayers};
use crate::defaults::DynamicDefault;
use crate::field_error::ErrorType;
use crate::kind::ValidatedResource;
use crate::passing;
use crate::policy::Policy;
use crate::rule::Layer;
use crate::schema::{Schema, join};
use crate::settings::Settings;
use crate::sighting::CrdMatch;
use crate::structural::Scale;
use crate::typed::RustRules;
use crate::verdict::{ValidationResult, Violation};
use crate::written::RawObject;

/// Why a ruleset does not compile. It stops the start, never a request.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The CRD has no schema for the version that is judged.
    #[error("the CRD has no schema for version `{version}`; add it to `spec.versions`")]
    NoSchema {
        /// The version.
        version: String,
    },
    /// The schema says something that this judge cannot judge as the API server does.
    #[error("schema at {at}: {problem}")]
    Schema {
        /// The dotted name of the schema node.
        at: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A CEL rule does not parse or uses what this judge does not have.
    #[error("CEL rule at {at}: {problem}: {rule}")]
    Cel {
        /// The dotted name of the schema node.
        at: String,
        /// What is wrong with it.
        problem: String,
        /// The rule's source.
        rule: String,
    },
}

/// One layer of the judgement.
pub(crate) trait ValidationLayer: Send + Sync {
    /// Adds what is wrong with the object to the report.
    fn validate(&self, case: &LayerContext<'_>, report: &mut Report<'_>);
}

/// What a layer sees of a candidate.
pub(crate) struct LayerContext<'a> {
    pub(crate) operation: Operation,
    pub(crate) schema: &'a Schema,
    /// Whether the status is changed through a subresource of its own, and not with the object.
    pub(crate) has_status_subresource: bool,
    /// What the scale subresource stands on, for a kind that has one.
    pub(crate) scale: Option<&'a Scale>,
    /// The object, defaults filled.
    pub(crate) object: &'a Value,
    /// The object it replaces, defaults filled: errors that it has too are inherited.
    pub(crate) old: Option<&'a Value>,
    /// What transitions are judged against.
    pub(crate) before: Option<&'a Value>,
    /// What violations of Rust rules do.
    pub(crate) policy: Option<&'a Policy>,
    /// What rules may know of other objects.
    pub(crate) related: Option<&'a Value>,
    /// Whether it is enough to know that something is wrong.
    pub(crate) is_enough_to_know: bool,
}

/// What the layers found.
#[derive(Default)]
pub(crate) struct Report<'a> {
    errors: Vec<Violation>,
    warnings: Vec<Violation>,
    audited: Vec<Violation>,
    inherited: Vec<RatchetedViolation>,
    /// Errors in spite of which the object was accepted before.
    known: &'a [RatchetedViolation],
}

impl<'a> Report<'a> {
    pub(crate) fn new(known: &'a [RatchetedViolation]) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Adds an error; one that was there before is only a warning.
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

    /// Notes that the object is accepted in spite of an error.
    pub(crate) fn record_ratcheted(&mut self, violation: &Violation) {
        self.inherited.extend(RatchetedViolation::of(violation));
    }

    pub(crate) fn warn(&mut self, violation: Violation) {
        self.warnings.push(violation);
    }

    /// Turns every error so far into advice: another CRD than this one is what the API server judges by.
    pub(crate) fn downgrade_errors_to_warnings(&mut self) {
        self.warnings.append(&mut self.errors);
    }

    pub(crate) fn audit(&mut self, violation: Violation) {
        self.audited.push(violation);
    }

    /// Whether nothing at all was found.
    pub(crate) fn is_empty(&self) -> bool {
        let found = [&self.errors, &self.warnings, &self.audited];
        found.into_iter().all(Vec::is_empty)
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The verdict, for an object that is as it is now and came to be so by these operations.
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

    /// Whether the API server would not evaluate CEL rules on this object any more.
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

/// What can judge objects of one kind, whatever its Rust type.
pub trait Validator: Send + Sync {
    /// The API group.
    fn group(&self) -> &str;
    /// The API version that is judged.
    fn version(&self) -> &str;
    /// The kind.
    fn kind(&self) -> &str;
    /// The `CustomResourceDefinition`.
    fn crd(&self) -> &Value;
    /// Every rule, sorted by layer and id.
    fn rules(&self) -> Vec<RuleInfo>;
    /// What a policy may tell its rules.
    fn settings(&self) -> Option<Settings> {
        None
    }
    /// The fields to remember of an accepted object.
    fn transition_fields(&self) -> &BTreeSet<String>;
    /// Judges a candidate.
    fn validate(&self, candidate: &ValidationRequest<'_>) -> ValidationResult;
    /// What is added to a candidate before it is judged.
    fn default_patch(&self, candidate: &ValidationRequest<'_>) -> Patch {
        self.validate(candidate).defaults
    }
    /// Whether an object passes with nothing to add to it and nothing to say: by every layer, or by the
    /// Rust rules alone where the API server has just judged the rest by this very CRD.
    ///
    /// `false` says only that it is not that simple: a judgement tells what.
    fn is_trivially_valid(
        &self,
        _object: &RawObject<'_>,
        _old: Option<&RawObject<'_>>,
        _crd: CrdMatch,
    ) -> bool {
        false
    }
    /// Whether there is nothing to add to an object; where the API server goes by this very CRD, it has
    /// filled what it can.
    fn has_all_defaults(&self, _object: &RawObject<'_>, _crd: CrdMatch) -> bool {
        false
    }
    /// An object of this kind in another version, named as in `apiVersion`.
    ///
    /// # Errors
    ///
    /// When the kind has no such version.
    fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let only = Versions {
            group: self.group(),
            kind: self.kind(),
            storage_version: self.version(),
            others: Vec::new(),
        };
        only.convert(object, to)
    }
    /// An object that nothing is wrong with but that it is a [canary](crate::canary), if the kind can
    /// make one.
    fn probe_object(&self, _name: &str, _namespace: &str) -> Option<Value> {
        None
    }
}

/// Everything compiled for one kind: structural schema, CEL rules, Rust rules, defaults.
pub struct Ruleset<K: ValidatedResource> {
    resource: CrdValidator,
    dynamic_defaults: Vec<DynamicDefault>,
    transition_fields: BTreeSet<String>,
    typed: RustRules<K>,
    catalogue: Vec<RuleInfo>,
}

impl<K: ValidatedResource> Ruleset<K> {
    /// Compiles the ruleset of a kind, once, at start.
    ///
    /// # Errors
    ///
    /// When the schema or a CEL rule uses something that would be judged differently here than by
    /// the API server.
    pub fn compile() -> Result<Self, CompileError> {
        let resource = CrdValidator::compile(&K::crd(), K::VERSION)?;
        if !resource.schema.rules.is_empty() {
            // A metadata change alone would bring such a rule back to life and block the removal of
            // a finalizer.
            return Err(CompileError::Schema {
                at: "the root".to_owned(),
                problem: "a CEL rule must not sit at the root of an object".to_owned(),
            });
        }
        let mut transition_fields: BTreeSet<String> = K::transition_fields()
            .iter()
            .map(|s| (*s).to_owned())
            .collect();
        // A default that depends on other fields must not change what runs; nor may a transition go
        // unseen.
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
                    // A rule of an object compares the field that it points to.
                    transition_fields.insert(join(name, field));
                }
            }
        });
        let mut catalogue = catalogue::of_version(
            &resource.schema,
            resource.scale.as_ref(),
            K::rule_references(),
        );
        let rules = K::rules();
        catalogue.push(canary::rule_info());
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
            typed: RustRules { rules },
            catalogue,
        })
    }
}

impl<K: ValidatedResource> Ruleset<K> {
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
        Some(canary::probe_object(example, name, namespace))
    }

    fn default_patch(&self, candidate: &ValidationRequest<'_>) -> Patch {
        self.resource.default_patch(candidate, &self.extra_layers())
    }

    fn is_trivially_valid(
        &self,
        object: &RawObject<'_>,
        old: Option<&RawObject<'_>>,
        crd: CrdMatch,
    ) -> bool {
        let (object, old) = (object.tree(), old.map(RawObject::tree));
        passing::is_complete(object, &self.dynamic_defaults)
            && old.is_none_or(|old| {
                passing::is_as_accepted(old, &self.dynamic_defaults, &self.transition_fields)
            })
            && (crd == CrdMatch::Same || self.resource.is_trivially_valid(object, old))
            && self.typed.is_trivially_valid(object, old)
    }

    fn has_all_defaults(&self, object: &RawObject<'_>, crd: CrdMatch) -> bool {
        passing::is_complete(object.tree(), &self.dynamic_defaults)
            && (crd == CrdMatch::Same || self.resource.has_all_defaults(object.tree()))
    }

    fn validate(&self, candidate: &ValidationRequest<'_>) -> ValidationResult {
        self.resource.validate_with(candidate, &self.extra_layers())
    }
}
