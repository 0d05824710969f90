//! Everything compiled for one kind, and the judgement itself.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde_json::Value;

use crate::candidate::{Candidate, Operation, UnknownFields};
use crate::cel::Cel;
use crate::defaults::{self, DynamicDefault};
use crate::field_error::{ErrorType, FieldError};
use crate::kind::Kind;
use crate::schema::Schema;
use crate::structural::Structural;
use crate::typed::Typed;
use crate::unknown_fields;
use crate::verdict::{Verdict, Violation};

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
    fn judge(&self, case: &Case<'_>, report: &mut Report);
}

/// What a layer sees of a candidate.
pub(crate) struct Case<'a> {
    pub(crate) operation: Operation,
    pub(crate) schema: &'a Schema,
    /// The object, defaults filled.
    pub(crate) object: &'a Value,
    /// The object it replaces, defaults filled: errors that it has too are inherited.
    pub(crate) old: Option<&'a Value>,
    /// What transitions are judged against.
    pub(crate) before: Option<&'a Value>,
}

/// What the layers found.
#[derive(Default)]
pub(crate) struct Report {
    errors: Vec<Violation>,
    warnings: Vec<Violation>,
}

impl Report {
    /// Adds an error; one that the old object has too is only a warning.
    pub(crate) fn add(&mut self, violation: Violation, inherited: bool) {
        if inherited {
            self.warn(violation);
        } else {
            self.errors.push(violation);
        }
    }

    pub(crate) fn warn(&mut self, violation: Violation) {
        self.warnings.push(violation);
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether the API server would not evaluate CEL rules on this object any more.
    fn blocks_cel(&self) -> bool {
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

/// What can judge objects of one kind, whatever its Rust type.
pub trait Judge: Send + Sync {
    /// The API group.
    fn group(&self) -> &'static str;
    /// The API version that is judged.
    fn version(&self) -> &'static str;
    /// The kind.
    fn kind(&self) -> &'static str;
    /// The `CustomResourceDefinition`.
    fn crd(&self) -> &Value;
    /// The fields to remember of an accepted object.
    fn transition_fields(&self) -> &BTreeSet<String>;
    /// Judges a candidate.
    fn check(&self, candidate: &Candidate<'_>) -> Verdict;
}

/// Everything compiled for one kind: structural schema, CEL rules, Rust rules, defaults.
pub struct Ruleset<K> {
    crd: Value,
    schema: Schema,
    dynamic_defaults: Vec<DynamicDefault>,
    transition_fields: BTreeSet<String>,
    structural: Structural,
    cel: Cel,
    typed: Box<dyn LayerJudge>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Ruleset<K> {
    /// Compiles the ruleset of a kind, once, at start.
    ///
    /// # Errors
    ///
    /// When the schema or a CEL rule uses something that would be judged differently here than by
    /// the API server.
    pub fn compile() -> Result<Self, CompileError> {
        let crd = K::crd();
        let schema = Schema::of_crd(&crd, K::VERSION)?;
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
        schema.visit_named("", &mut |name, node| {
            let is_scalar =
                node.properties.is_empty() && node.additional.is_none() && node.items.is_none();
            if is_scalar && node.rules.iter().any(|rule| rule.uses_old_self) {
                transition_fields.insert(name.to_owned());
            }
        });
        Ok(Self {
            crd,
            schema,
            dynamic_defaults,
            transition_fields,
            structural: Structural,
            cel: Cel::new(),
            typed: Box::new(Typed { rules: K::rules() }),
            kind: PhantomData,
        })
    }

    fn filled<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let mut filled = object.clone();
        let mut additions = defaults::fill_static(&mut filled, &self.schema);
        defaults::fill_dynamic(&mut filled, None, &self.dynamic_defaults, &mut additions);
        Cow::Owned(filled)
    }
}

impl<K: Kind> Judge for Ruleset<K> {
    fn group(&self) -> &'static str {
        K::GROUP
    }

    fn version(&self) -> &'static str {
        K::VERSION
    }

    fn kind(&self) -> &'static str {
        K::KIND
    }

    fn crd(&self) -> &Value {
        &self.crd
    }

    fn transition_fields(&self) -> &BTreeSet<String> {
        &self.transition_fields
    }

    fn check(&self, candidate: &Candidate<'_>) -> Verdict {
        let mut object = candidate.object.clone();
        if candidate.only_finalizes() {
            return Verdict {
                object,
                additions: json_patch::Patch::default(),
                errors: vec![],
                warnings: vec![],
            };
        }
        let old = candidate.old.map(|old| self.filled(old));
        let mut additions = defaults::fill_static(&mut object, &self.schema);
        let before = match candidate.accepted {
            Some(accepted) => {
                let base = old.as_deref().unwrap_or(&object);
                Some(Cow::Owned(accepted.overlay(base, &self.transition_fields)))
            }
            None => old.as_deref().map(Cow::Borrowed),
        };
        defaults::fill_dynamic(
            &mut object,
            before.as_deref(),
            &self.dynamic_defaults,
            &mut additions,
        );
        let additions = json_patch::Patch(additions);
        let case = Case {
            operation: candidate.operation,
            schema: &self.schema,
            object: &object,
            old: old.as_deref(),
            before: before.as_deref(),
        };
        let mut report = Report::default();
        if candidate.unknown_fields == UnknownFields::Refuse {
            unknown_fields::report(candidate.object, &self.schema, &mut report);
        }
        self.structural.judge(&case, &mut report);
        if !report.blocks_cel() {
            self.cel.judge(&case, &mut report);
        }
        self.typed.judge(&case, &mut report);
        let Report {
            mut errors,
            mut warnings,
        } = report;
        errors.sort_by(order);
        warnings.sort_by(order);
        Verdict {
            object,
            additions,
            errors,
            warnings,
        }
    }
}

fn order(a: &Violation, b: &Violation) -> std::cmp::Ordering {
    let key = |v: &Violation| (v.error.path.clone(), v.layer);
    key(a)
        .cmp(&key(b))
        .then_with(|| message(&a.error).cmp(&message(&b.error)))
}

fn message(error: &FieldError) -> String {
    error.body()
}
