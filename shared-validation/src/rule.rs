//! One named thing that can be wrong.

use std::any::Any;
use std::cell::{Cell, OnceCell};

use serde_json::Value;

use crate::candidate::Operation;
use crate::field_error::FieldError;
use crate::field_path::FieldPath;

/// Where a rule is written. The order is the order in which a cluster asks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The CRD's `OpenAPI` schema.
    Schema,
    /// `x-kubernetes-validations` in the CRD.
    Cel,
    /// Rust, for what neither can say.
    Rust,
}

impl Layer {
    /// The name, as the desk prints it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "structural",
            Self::Cel => "cel",
            Self::Rust => "rust",
        }
    }
}

/// What a violation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The object is refused, or frozen.
    Error,
    /// Advice; the object stands.
    Warning,
}

/// A rule of the Rust layer.
pub struct Rule<K> {
    /// Stable and kebab-case; ends every message of the rule in brackets.
    pub id: &'static str,
    /// What the rule demands, in one sentence.
    pub description: &'static str,
    /// What a violation does.
    pub severity: Severity,
    /// The page that the rule comes from.
    pub reference: &'static str,
    /// The fields that the check reads, as printed paths. An error stays a warning on an update
    /// that leaves all of them as they were.
    pub fields: &'static [&'static str],
    /// The check itself.
    pub validate: fn(&RuleContext<'_, K>, &mut Diagnostics),
}

/// What a Rust rule judges.
pub struct RuleContext<'a, K> {
    /// What is being done to the object.
    pub operation: Operation,
    /// The object, defaults filled.
    pub object: &'a K,
    /// What the object was, for rules about transitions; absent when it is new.
    pub old: Option<&'a K>,
    /// The section of the policy that is for the kind, if there is one.
    pub settings: Option<&'a Value>,
    others: Option<&'a Value>,
    /// Whether anybody has asked for others since that was last looked at.
    is_asked_for_others: Cell<bool>,
    prepared: OnceCell<Box<dyn Any>>,
}

impl<'a, K> RuleContext<'a, K> {
    pub(crate) fn new(
        operation: Operation,
        object: &'a K,
        old: Option<&'a K>,
        settings: Option<&'a Value>,
    ) -> Self {
        Self {
            operation,
            object,
            old,
            settings,
            others: None,
            is_asked_for_others: Cell::new(false),
            prepared: OnceCell::new(),
        }
    }

    /// The same, among others.
    pub(crate) fn with_related(self, others: Option<&'a Value>) -> Self {
        Self { others, ..self }
    }

    /// What is known of other objects, in the form that the kind's operator tells it. Only the loop knows of them:
    /// a rule that asks finds nothing at the gate and at the desk.
    pub fn related(&self) -> Option<&'a Value> {
        self.is_asked_for_others.set(true);
        self.others
    }

    /// Whether anybody has been told of others since this was last asked.
    pub(crate) fn has_read_related(&self) -> bool {
        self.is_asked_for_others.take() && self.others.is_some()
    }

    /// What several rules need of the subject, made by the first that asks. All rules of a kind share one.
    ///
    /// # Panics
    ///
    /// When another rule of the kind has prepared something of another type.
    pub fn get_or_compute<T: 'static>(&self, make: impl FnOnce() -> T) -> &T {
        let prepared = self.prepared.get_or_init(|| Box::new(make()));
        prepared
            .downcast_ref()
            .expect("the rules of a kind prepare the same")
    }
}

/// How much of what one rule finds is told. Nobody reads more, and everybody would have to carry it.
const MOST_TOLD: usize = 200;

/// What a Rust rule found.
#[derive(Default)]
pub struct Diagnostics {
    errors: Vec<FieldError>,
    /// How much more there was than is told.
    left_out: usize,
}

impl Diagnostics {
    /// Reports a malformed or out-of-range value, at a dotted path.
    pub fn invalid(&mut self, path: &str, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(FieldPath::new(path), value, detail));
    }

    /// Reports one violation.
    pub fn push(&mut self, error: FieldError) {
        if self.errors.len() < MOST_TOLD {
            self.errors.push(error);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn into_errors(mut self) -> Vec<FieldError> {
        if let Some(last) = self.errors.last().filter(|_| self.left_out > 0) {
            let detail = format!("and {} more, which are not told", self.left_out);
            self.errors
                .push(FieldError::invalid_hidden(last.path.clone(), detail));
        }
        self.errors
    }
}
