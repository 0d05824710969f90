//! Rules of the Rust layer, and what they read and report.

use std::any::Any;
use std::cell::{Cell, OnceCell};

use crd_validation::field::BadValue;
use crd_validation::{FieldError, FieldPath};
use serde_json::Value;

use crate::found_errors::{Fingerprints, FoundErrors};
use crate::operation::Operation;

/// Layer in which a rule is written. The variants are in the order in which a cluster evaluates them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `OpenAPI` schema of the CRD.
    Schema,
    /// CEL rules: `x-kubernetes-validations` in the CRD.
    Cel,
    /// Rust rules, for conditions that neither the schema nor CEL can express.
    Rust,
}

impl Layer {
    /// Returns the name, as printed by the CLI.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Cel => "cel",
            Self::Rust => "rust",
        }
    }
}

impl From<crd_validation::Layer> for Layer {
    fn from(layer: crd_validation::Layer) -> Self {
        match layer {
            crd_validation::Layer::Schema => Self::Schema,
            crd_validation::Layer::Cel => Self::Cel,
        }
    }
}

/// Severity of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A violation is an error: the webhook denies the object, the controller suspends its reconciliation.
    Error,
    /// A violation is a warning: the object is valid.
    Warning,
}

/// One rule of the Rust layer.
///
/// # Examples
///
/// ```
/// use lockstep_shared_validation::{Rule, Severity};
///
/// struct User {
///     name: String,
/// }
///
/// let rule = Rule::<User> {
///     id: "reserved-name",
///     description: "The name must not be `admin`.",
///     severity: Severity::Error,
///     reference: "https://example.com/reserved-names",
///     fields: &["name"],
///     validate: |context, diagnostics| {
///         if context.object.name == "admin" {
///             diagnostics.invalid("name", "admin", "is reserved");
///         }
///     },
/// };
/// assert_eq!(rule.id, "reserved-name");
/// ```
pub struct Rule<K> {
    /// Stable id in kebab-case. Every message of the rule ends with it, in brackets.
    pub id: &'static str,
    /// Description of the rule: one complete sentence.
    pub description: &'static str,
    /// Severity of a violation, unless a policy sets another action.
    pub severity: Severity,
    /// URL of the page from which the rule comes.
    pub reference: &'static str,
    /// Paths of the fields that the check reads, in printed form. An update that changes none of them cannot
    /// introduce an error, so an error that the old object had too becomes a warning (ratcheting).
    pub fields: &'static [&'static str],
    /// Check function: adds violations to the diagnostics.
    pub validate: fn(&RuleContext<'_, K>, &mut Diagnostics),
}

/// Input of a Rust rule.
///
/// ```
/// use lockstep_shared_validation::{Diagnostics, RuleContext};
///
/// struct Disk {
///     size_gib: u64,
/// }
///
/// /// Checks that a disk does not shrink, and that it is not larger than the policy allows.
/// fn has_valid_size(context: &RuleContext<'_, Disk>, diagnostics: &mut Diagnostics) {
///     let size = context.object.size_gib;
///     if context.old.is_some_and(|old| size < old.size_gib) {
///         diagnostics.invalid("spec.sizeGib", size, "must not decrease");
///     }
///     let limit = context.settings.and_then(|settings| settings["maxSizeGib"].as_u64());
///     if let Some(limit) = limit.filter(|limit| size > *limit) {
///         diagnostics.invalid("spec.sizeGib", size, format!("must be at most {limit}"));
///     }
/// }
/// ```
pub struct RuleContext<'a, K> {
    /// Operation on the object.
    pub operation: Operation,
    /// The object, with defaults filled.
    pub object: &'a K,
    /// The object with which transition rules compare: the old object, or the one with the last validated
    /// values. `None` for a new object.
    pub old: Option<&'a K>,
    /// Section of the policy settings for the kind, if set.
    pub settings: Option<&'a Value>,
    others: Option<&'a Value>,
    extension: Option<&'a (dyn Any + Send + Sync)>,
    /// If true, a rule has called `related` since this flag was last reset.
    reads_related: Cell<bool>,
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
            extension: None,
            reads_related: Cell::new(false),
            prepared: OnceCell::new(),
        }
    }

    /// Sets the related objects.
    pub(crate) fn with_related(self, others: Option<&'a Value>) -> Self {
        Self { others, ..self }
    }

    /// Sets the extension of the ruleset.
    pub(crate) fn with_extension(self, extension: Option<&'a (dyn Any + Send + Sync)>) -> Self {
        Self { extension, ..self }
    }

    /// Returns the [extension](crate::Ruleset::with_extension) of the ruleset, if it has one of this type.
    pub fn extension<T: 'static>(&self) -> Option<&'a T> {
        self.extension?.downcast_ref()
    }

    /// Returns the related objects, in the format of the kind's operator. Only the controller provides them: in
    /// the webhook and in the CLI this is `None`.
    pub fn related(&self) -> Option<&'a Value> {
        self.reads_related.set(true);
        self.others
    }

    /// Returns true if related objects were read since the last call of this function, and resets the flag.
    pub(crate) fn has_read_related(&self) -> bool {
        self.reads_related.take() && self.others.is_some()
    }

    /// Returns a value that several rules of a kind share. The first rule that calls this computes it.
    ///
    /// # Panics
    ///
    /// If another rule of the kind has cached a value of another type.
    pub fn get_or_compute<T: 'static>(&self, make: impl FnOnce() -> T) -> &T {
        let prepared = self.prepared.get_or_init(|| Box::new(make()));
        prepared
            .downcast_ref()
            .expect("all rules of a kind must cache a value of the same type")
    }
}

/// Errors that a Rust rule found. Memory is bounded, however many a rule reports.
///
/// ```
/// use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath};
///
/// let mut diagnostics = Diagnostics::default();
/// diagnostics.invalid("spec.names[1]", "admin", "is reserved");
/// // The value is a secret, and is in no message.
/// let path = FieldPath::new("spec.password");
/// diagnostics.push(FieldError::invalid_hidden(path, "must have 12 characters or more"));
/// ```
#[derive(Default)]
pub struct Diagnostics {
    found: FoundErrors,
    /// If set, only the fingerprints of the errors are needed.
    fingerprints: Option<Fingerprints>,
}

impl Diagnostics {
    /// Reports a malformed or out-of-range value at a path in printed form. With [`field!`](crate::field), a path that names
    /// no field does not compile.
    pub fn invalid(
        &mut self,
        path: impl AsRef<str>,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) {
        let path = FieldPath::new(path.as_ref());
        self.push(FieldError::invalid(path, value, detail));
    }

    /// Reports an error.
    pub fn push(&mut self, error: FieldError) {
        match &mut self.fingerprints {
            Some(fingerprints) => fingerprints.add(&error),
            None => self.found.add(error),
        }
    }

    /// Creates diagnostics that add errors to those found so far.
    pub(crate) fn new(found: FoundErrors) -> Self {
        Self {
            found,
            fingerprints: None,
        }
    }

    /// Creates diagnostics that keep only the fingerprints of errors.
    pub(crate) fn of_fingerprints(fingerprints: Fingerprints) -> Self {
        Self {
            found: FoundErrors::default(),
            fingerprints: Some(fingerprints),
        }
    }

    pub(crate) fn into_found(self) -> FoundErrors {
        self.found
    }

    pub(crate) fn into_fingerprints(self) -> Option<Fingerprints> {
        self.fingerprints
    }
}
