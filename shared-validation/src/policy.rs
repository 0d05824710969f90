//! Policy: the action that a violation of a Rust rule has in one installation.

mod file;

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use serde::Deserialize;
use serde_json::Value;

/// Action on a violation, as the `validationActions` of a `ValidatingAdmissionPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The object is invalid: the webhook denies it, the controller suspends its reconciliation.
    Deny,
    /// The user gets a warning; the object is valid.
    Warn,
    /// The violation is only recorded: in metrics, audit annotations and the output of `lockstep audit`.
    Audit,
}

impl Action {
    /// Returns the name used in a policy file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }
}

/// Actions of Rust rules by kind and rule id, and settings for rules. A rule that is not listed keeps its own
/// severity.
///
/// The API server enforces the schema and the CEL rules, so a policy cannot contain them.
///
/// ```
/// use std::sync::Arc;
///
/// use lockstep_shared_validation::{Action, Policy, Ruleset, ValidationRequest, Validator, ValidatorRegistry};
/// use serde_json::json;
/// # use lockstep_shared_validation::{Rule, Severity, ValidatedResource};
/// # #[derive(serde::Deserialize)]
/// # struct User { spec: Spec }
/// # #[derive(serde::Deserialize)]
/// # struct Spec { name: String }
/// # impl ValidatedResource for User {
/// #     const GROUP: &'static str = "example.com";
/// #     const VERSION: &'static str = "v1";
/// #     const KIND: &'static str = "User";
/// #     fn crd() -> serde_json::Value {
/// #         let spec = json!({"type": "object", "properties": {"name": {"type": "string"}}});
/// #         let schema = json!({"type": "object", "properties": {"spec": spec}});
/// #         json!({"spec": {
/// #             "group": "example.com", "scope": "Namespaced", "names": {"kind": "User", "plural": "users"},
/// #             "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
/// #         }})
/// #     }
/// #     fn example() -> serde_json::Value { json!({"spec": {"name": "ada"}}) }
/// #     fn rules() -> Vec<Rule<Self>> {
/// #         vec![Rule {
/// #             id: "reserved-name",
/// #             description: "The name must not be `admin`.",
/// #             severity: Severity::Error,
/// #             reference: "https://example.com/reserved-names",
/// #             fields: &["spec.name"],
/// #             validate: |context, diagnostics| {
/// #                 if context.object.spec.name == "admin" {
/// #                     diagnostics.invalid("spec.name", "admin", "is reserved");
/// #                 }
/// #             },
/// #         }]
/// #     }
/// # }
///
/// let ruleset = Arc::new(Ruleset::<User>::compile()?);
/// let validators = ValidatorRegistry::default().register(ruleset.clone());
/// let file = json!({"rules": {"User": {"reserved-name": "warn"}}});
/// let policy = Policy::read(&file, &validators)?;
/// assert_eq!(policy.action("User", "reserved-name"), Some(Action::Warn));
///
/// let user = json!({"spec": {"name": "admin"}});
/// let result = ruleset.validate(&ValidationRequest::create(&user).with_policy(&policy));
/// assert!(result.is_valid());
/// assert_eq!(result.warnings.len(), 1);
///
/// let typing_error = json!({"rules": {"User": {"reserved-names": "warn"}}});
/// assert!(Policy::read(&typing_error, &validators).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    rules: BTreeMap<String, BTreeMap<String, Action>>,
    /// Settings for rules, by section.
    settings: BTreeMap<String, Value>,
}

/// Reason why a policy was rejected. The previous policy stays in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file does not have the structure of a policy.
    #[error(
        "{0}; a policy contains `rules:` (kind, then rule id, then `deny`, `warn` or `audit`) and `settings:` (one entry for each section)"
    )]
    Shape(String),
    /// The kind is not registered.
    #[error("rules.{kind}: the kind is unknown; the registered kinds are {known}")]
    Kind {
        /// The kind in the file.
        kind: String,
        /// The registered kinds.
        known: String,
    },
    /// A section of the settings is unknown or invalid.
    #[error("settings.{section}: {problem}")]
    Settings {
        /// The section.
        section: String,
        /// Description of the problem.
        problem: String,
    },
    /// The action is unknown.
    #[error(
        "rules.{kind}.{id}: the action {action} is unknown; set it to `deny`, `warn` or `audit`"
    )]
    Action {
        /// The kind.
        kind: String,
        /// The rule id.
        id: String,
        /// The action in the file.
        action: Value,
    },
    /// The rule does not exist.
    #[error(
        "rules.{kind}.{id}: the rule is unknown; the subcommand `rules --kind {kind}` lists the rules"
    )]
    Rule {
        /// The kind.
        kind: String,
        /// The rule id in the file.
        id: String,
    },
    /// The rule is the one that denies admission probes.
    #[error(
        "rules.{kind}.{id}: this rule cannot be set in a policy, because it must always deny: the webhook is verified with it"
    )]
    AdmissionProbe {
        /// The kind.
        kind: String,
        /// The rule id.
        id: String,
    },
    /// The rule is part of the CRD, so the API server enforces it independently of any policy.
    #[error(
        "rules.{kind}.{id}: a {layer} rule is part of the CRD and is enforced by the API server; only Rust rules can be set in a policy"
    )]
    Layer {
        /// The kind.
        kind: String,
        /// The rule id.
        id: String,
        /// Layer of the rule.
        layer: &'static str,
    },
}

impl Policy {
    /// Returns the number of rules that the policy sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.values().map(BTreeMap::len).sum()
    }

    /// Returns true if the policy sets no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a section of the settings.
    #[must_use]
    pub fn settings(&self, section: &str) -> Option<&Value> {
        self.settings.get(section)
    }

    /// Returns a text that changes whenever the actions or the settings for this kind change. `section` is the
    /// section that the rules of the kind read.
    #[must_use]
    pub fn settings_fingerprint(&self, kind: &str, section: Option<&str>) -> String {
        let settings = section.and_then(|section| self.settings.get(section));
        format!("{:?} {settings:?}", self.rules.get(kind))
    }

    /// Returns the action that the policy sets for a rule, if any.
    #[must_use]
    pub fn action(&self, kind: &str, id: &str) -> Option<Action> {
        self.rules.get(kind)?.get(id).copied()
    }
}

/// Handle to the current policy. All validators share it, and it can be replaced at runtime.
///
/// ```
/// use lockstep_shared_validation::{Policy, PolicyHandle};
///
/// let handle = PolicyHandle::default();
/// let of_validator = handle.clone();
/// handle.set(Policy::default());
/// assert!(of_validator.get().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct PolicyHandle(Arc<RwLock<Arc<Policy>>>);

impl PolicyHandle {
    /// Returns the current policy.
    #[must_use]
    pub fn get(&self) -> Arc<Policy> {
        let policy = self
            .0
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(&policy)
    }

    /// Replaces the current policy.
    pub fn set(&self, policy: Policy) {
        let mut current = self
            .0
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *current = Arc::new(policy);
    }
}
