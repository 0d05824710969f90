//! What a violation of a Rust rule does, as the users of an installation decide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};

use serde::Deserialize;
use serde_json::Value;

use crate::canary;
use crate::registry::ValidatorRegistry;
use crate::rule::Layer;

/// What a violation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The object is refused, or frozen.
    Deny,
    /// The author is told; the object stands.
    Warn,
    /// Nobody is told, but it is counted: metrics, audit annotations and `lockstep audit` show it.
    Audit,
}

impl Action {
    /// The name in a policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }
}

/// The actions of Rust rules, by kind and rule. A rule that is not named does what it says itself.
///
/// Rules of the schema and CEL rules are the API server's to enforce; a policy cannot name them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    rules: BTreeMap<String, BTreeMap<String, Action>>,
    /// What rules may need to know, by section.
    settings: BTreeMap<String, Value>,
}

/// Why a policy is not taken. The one before it stays.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file has another shape.
    #[error(
        "{0}; a policy is `rules:`, under it kinds, and under each the ids of rules with `deny`, `warn` or `audit`; and `settings:`, under it sections"
    )]
    Shape(String),
    /// There is no such kind.
    #[error("rules.{kind}: no such kind; the kinds are {known}")]
    Kind {
        /// The kind in the file.
        kind: String,
        /// The kinds that there are.
        known: String,
    },
    /// A section of the settings is unknown or cannot be read.
    #[error("settings.{section}: {problem}")]
    Settings {
        /// The section.
        section: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no such rule.
    #[error("rules.{kind}.{id}: no such rule; `lockstep rules --kind {kind}` lists them")]
    Rule {
        /// The kind.
        kind: String,
        /// The rule in the file.
        id: String,
    },
    /// The rule is how the gate is seen to work.
    #[error(
        "rules.{kind}.{id}: always refuses; by it the gate is seen to work, and no policy sets it"
    )]
    AdmissionProbe {
        /// The kind.
        kind: String,
        /// The rule.
        id: String,
    },
    /// The rule is enforced by the API server, whatever is said here.
    #[error(
        "rules.{kind}.{id}: a {layer} rule stands in the CRD and is the API server's to enforce; a policy sets Rust rules only"
    )]
    Layer {
        /// The kind.
        kind: String,
        /// The rule.
        id: String,
        /// Its layer.
        layer: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rules: Option<BTreeMap<String, Option<BTreeMap<String, Action>>>>,
    #[serde(default)]
    settings: Option<BTreeMap<String, Value>>,
}

impl Policy {
    /// How many rules it sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.values().map(BTreeMap::len).sum()
    }

    /// Whether it sets none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a policy and checks every name in it. Null is the empty policy.
    ///
    /// # Errors
    ///
    /// When the shape is another one, or a kind, rule or action is unknown.
    pub fn read(file: &Value, rulesets: &ValidatorRegistry) -> Result<Self, PolicyError> {
        if file.is_null() {
            return Ok(Self::default());
        }
        if !file.is_object() {
            return Err(PolicyError::Shape("not a mapping".to_owned()));
        }
        let file =
            File::deserialize(file).map_err(|error| PolicyError::Shape(error.to_string()))?;
        let mut policy = Self::default();
        for (kind, rules) in file.rules.into_iter().flatten() {
            let Some(ruleset) = rulesets.iter().find(|ruleset| ruleset.kind() == kind) else {
                let known: Vec<_> = rulesets.iter().map(|ruleset| ruleset.kind()).collect();
                let known = known.join(", ");
                return Err(PolicyError::Kind { kind, known });
            };
            let catalogue = ruleset.rules();
            for id in rules.iter().flat_map(BTreeMap::keys) {
                let entry = catalogue.iter().find(|entry| entry.id == *id);
                match entry.map(|entry| entry.layer) {
                    Some(Layer::Rust) if *id == canary::RULE => {
                        let id = id.clone();
                        return Err(PolicyError::AdmissionProbe { kind, id });
                    }
                    Some(Layer::Rust) => {}
                    Some(layer) => {
                        let (id, layer) = (id.clone(), layer.as_str());
                        return Err(PolicyError::Layer { kind, id, layer });
                    }
                    None => {
                        return Err(PolicyError::Rule {
                            kind,
                            id: id.clone(),
                        });
                    }
                }
            }
            policy.rules.insert(kind, rules.unwrap_or_default());
        }
        for (section, value) in file.settings.into_iter().flatten() {
            let all = || rulesets.iter().filter_map(|ruleset| ruleset.settings());
            let Some(settings) = all().find(|settings| settings.section == section) else {
                let known: BTreeSet<_> = all().map(|settings| settings.section).collect();
                let known: Vec<_> = known.into_iter().collect();
                let problem = format!("no such section; the sections are {}", known.join(", "));
                return Err(PolicyError::Settings { section, problem });
            };
            // A heading with nothing under it.
            if value.is_null() {
                continue;
            }
            if let Err(problem) = (settings.validate)(&value) {
                return Err(PolicyError::Settings { section, problem });
            }
            policy.settings.insert(section, value);
        }
        Ok(policy)
    }

    /// What the policy tells in a section.
    #[must_use]
    pub fn settings(&self, section: &str) -> Option<&Value> {
        self.settings.get(section)
    }

    /// All that it says of a kind, whose rules read a section: another text says something else.
    #[must_use]
    pub fn settings_fingerprint(&self, kind: &str, section: Option<&str>) -> String {
        let settings = section.and_then(|section| self.settings.get(section));
        format!("{:?} {settings:?}", self.rules.get(kind))
    }

    /// What a violation of a rule does, if the policy says.
    #[must_use]
    pub fn action(&self, kind: &str, id: &str) -> Option<Action> {
        self.rules.get(kind)?.get(id).copied()
    }
}

/// The policy that is in force, shared by all who judge and replaced while they do.
#[derive(Clone, Default)]
pub struct PolicyHandle(Arc<RwLock<Arc<Policy>>>);

impl PolicyHandle {
    /// The policy as it is now.
    #[must_use]
    pub fn get(&self) -> Arc<Policy> {
        let policy = self
            .0
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(&policy)
    }

    /// Puts another policy in force.
    pub fn set(&self, policy: Policy) {
        let mut current = self
            .0
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *current = Arc::new(policy);
    }
}
