//! Everything compiled for one kind, and the judgement itself.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::accepted::Inherited;
use crate::canary;
use crate::candidate::{Candidate, Operation};
use crate::catalogue::{self, RuleEntry};
use crate::conversion::{ConversionError, Versions};
use crate::custom_resource::{Beyond, CustomResource};
use crate::defaults::DynamicDefault;
use crate::field_error::ErrorType;
use crate::kind::Kind;
use crate::passing;
use crate::policy::Policy;
use crate::rule::Layer;
use crate::schema::{Schema, join};
use crate::settings::Settings;
use crate::sighting::ClusterCrd;
use crate::structural::Scale;
use crate::typed::Typed;
use crate::verdict::{Verdict, Violation};
use crate::written::Written;

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
pub(crate) trait LayerJudge: Send + Sync {
    /// Adds what is wrong with the object to the report.
    fn judge(&self, case: &Case<'_>, report: &mut Report<'_>);
}

/// What a layer sees of a candidate.
pub(crate) struct Case<'a> {
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
    pub(crate) others: Option<&'a Value>,
    /// Whether it is enough to know that something is wrong.
    pub(crate) is_enough_to_know: bool,
}

/// What the layers found.
#[derive(Default)]
pub(crate) struct Report<'a> {
    errors: Vec<Violation>,
    warnings: Vec<Violation>,
    audited: Vec<Violation>,
    inherited: Vec<Inherited>,
    /// Errors in spite of which the object was accepted before.
    known: &'a [Inherited],
}

impl<'a> Report<'a> {
    pub(crate) fn new(known: &'a [Inherited]) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Adds an error; one that was there before is only a warning.
    pub(crate) fn add(&mut self, violation: Violation, inherited: bool) {
        let known = !self.known.is_empty()
            && Inherited::of(&violation).is_some_and(|identity| self.known.contains(&identity));
        if inherited || known {
            self.remember(&violation);
            self.warn(violation);
        } else {
            self.errors.push(violation);
        }
    }

    /// Notes that the object is accepted in spite of an error.
    pub(crate) fn remember(&mut self, violation: &Violation) {
        self.inherited.extend(Inherited::of(violation));
    }

    pub(crate) fn warn(&mut self, violation: Violation) {
        self.warnings.push(violation);
    }

    /// Turns every error so far into advice: another CRD than this one is what the API server judges by.
    pub(crate) fn advise(&mut self) {
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
    pub(crate) fn into_verdict(
        mut self,
        object: Value,
        operations: Vec<PatchOperation>,
    ) -> Verdict {
        self.errors.sort_by(order);
        self.warnings.sort_by(order);
        self.audited.sort_by(order);
        self.inherited.sort();
        self.inherited.dedup();
        Verdict {
            object,
            additions: json_patch::Patch(operations),
            errors: self.errors,
            warnings: self.warnings,
            audited: self.audited,
            inherited: self.inherited,
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
pub trait Judge: Send + Sync {
    /// The API group.
    fn group(&self) -> &str;
    /// The API version that is judged.
    fn version(&self) -> &str;
    /// The kind.
    fn kind(&self) -> &str;
    /// The `CustomResourceDefinition`.
    fn crd(&self) -> &Value;
    /// Every rule, sorted by layer and id.
    fn catalogue(&self) -> Vec<RuleEntry>;
    /// What a policy may tell its rules.
    fn settings(&self) -> Option<Settings> {
        None
    }
    /// The fields to remember of an accepted object.
    fn transition_fields(&self) -> &BTreeSet<String>;
    /// Judges a candidate.
    fn check(&self, candidate: &Candidate<'_>) -> Verdict;
    /// What is added to a candidate before it is judged.
    fn additions(&self, candidate: &Candidate<'_>) -> Patch {
        self.check(candidate).additions
    }
    /// Whether an object passes with nothing to add to it and nothing to say: by every layer, or by the
    /// Rust rules alone where the API server has just judged the rest by this very CRD.
    ///
    /// `false` says only that it is not that simple: a judgement tells what.
    fn passes(&self, _object: &Written<'_>, _old: Option<&Written<'_>>, _crd: ClusterCrd) -> bool {
        false
    }
    /// Whether there is nothing to add to an object; where the API server goes by this very CRD, it has
    /// filled what it can.
    fn is_complete(&self, _object: &Written<'_>, _crd: ClusterCrd) -> bool {
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
            judged: self.version(),
            others: Vec::new(),
        };
        only.convert(object, to)
    }
    /// An object that nothing is wrong with but that it is a [canary](crate::canary), if the kind can
    /// make one.
    fn canary(&self, _name: &str, _namespace: &str) -> Option<Value> {
        None
    }
}

/// Everything compiled for one kind: structural schema, CEL rules, Rust rules, defaults.
pub struct Ruleset<K: Kind> {
    resource: CustomResource,
    dynamic_defaults: Vec<DynamicDefault>,
    transition_fields: BTreeSet<String>,
    typed: Typed<K>,
    catalogue: Vec<RuleEntry>,
}

impl<K: Kind> Ruleset<K> {
    /// Compiles the ruleset of a kind, once, at start.
    ///
    /// # Errors
    ///
    /// When the schema or a CEL rule uses something that would be judged differently here than by
    /// the API server.
    pub fn compile() -> Result<Self, CompileError> {
        let resource = CustomResource::compile(&K::crd(), K::VERSION)?;
        if !resource.schema.rules.is_empty() {
            // A metadata change alone would bring such a rule back to life and block the removal of
            // a finalizer.
            return Err(CompileError::Schema {
                at: "the root".to_owned(),
                problem: "a CEL rule must not sit at the root of an object".to_owned(),
            });
        }
        let mut transition_fields: BTreeSet<String> = K::remembered_fields()
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
        let mut catalogue =
            catalogue::of_version(&resource.schema, resource.scale.as_ref(), K::sources());
        let rules = K::rules();
        catalogue.push(canary::entry());
        catalogue.extend(rules.iter().map(|rule| RuleEntry {
            id: rule.id.to_owned(),
            layer: Layer::Rust,
            severity: rule.severity,
            sentence: rule.sentence.to_owned(),
            source: rule.source.to_owned(),
            fields: rule.reads.iter().map(|field| (*field).to_owned()).collect(),
            expression: None,
        }));
        Ok(Self {
            resource,
            dynamic_defaults,
            transition_fields,
            typed: Typed { rules },
            catalogue,
        })
    }
}

impl<K: Kind> Ruleset<K> {
    fn beyond(&self) -> Beyond<'_> {
        Beyond {
            dynamic_defaults: &self.dynamic_defaults,
            transition_fields: &self.transition_fields,
            typed: Some(&self.typed),
        }
    }
}

impl<K: Kind> Judge for Ruleset<K> {
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

    fn catalogue(&self) -> Vec<RuleEntry> {
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
            judged: K::VERSION,
            others: K::other_versions(),
        };
        versions.convert(object, to)
    }

    fn canary(&self, name: &str, namespace: &str) -> Option<Value> {
        let mut example = K::example();
        example["apiVersion"] = format!("{}/{}", K::GROUP, K::VERSION).into();
        example["kind"] = K::KIND.into();
        let namespace = self.resource.is_namespaced().then_some(namespace);
        Some(canary::of(example, name, namespace))
    }

    fn additions(&self, candidate: &Candidate<'_>) -> Patch {
        self.resource.additions(candidate, &self.beyond())
    }

    fn passes(&self, object: &Written<'_>, old: Option<&Written<'_>>, crd: ClusterCrd) -> bool {
        let (object, old) = (object.tree(), old.map(Written::tree));
        passing::is_complete(object, &self.dynamic_defaults)
            && old.is_none_or(|old| {
                passing::is_as_accepted(old, &self.dynamic_defaults, &self.transition_fields)
            })
            && (crd == ClusterCrd::Same || self.resource.is_silent(object, old))
            && self.typed.is_silent(object, old)
    }

    fn is_complete(&self, object: &Written<'_>, crd: ClusterCrd) -> bool {
        passing::is_complete(object.tree(), &self.dynamic_defaults)
            && (crd == ClusterCrd::Same || self.resource.is_filled(object.tree()))
    }

    fn check(&self, candidate: &Candidate<'_>) -> Verdict {
        self.resource.judge(candidate, &self.beyond())
    }
}
