//! Policy file: its structure, and the check of all names in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::policy::{Action, Policy, PolicyError};
use crate::probe;
use crate::registry::ValidatorRegistry;
use crate::rule::Layer;

/// Keys of a policy.
const KEYS: [&str; 2] = ["rules", "settings"];

impl Policy {
    /// Parses a policy and checks every name in it. `null` is the empty policy.
    ///
    /// # Errors
    ///
    /// If the structure is wrong, or a kind, rule, action or settings section is unknown or invalid.
    pub fn read(file: &Value, validators: &ValidatorRegistry) -> Result<Self, PolicyError> {
        let file = mapping("", Some(file))?;
        if let Some(key) = file.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(PolicyError::Shape(format!("{key}: the key is unknown")));
        }
        let mut policy = Self::default();
        for (kind, rules) in mapping("rules", file.get("rules"))? {
            let rules = mapping(&format!("rules.{kind}"), Some(&rules))?;
            let Some(ruleset) = validators.iter().find(|ruleset| ruleset.kind() == kind) else {
                let known: Vec<_> = validators.iter().map(|ruleset| ruleset.kind()).collect();
                let known = known.join(", ");
                return Err(PolicyError::Kind { kind, known });
            };
            let catalogue = ruleset.rules();
            let mut actions = BTreeMap::new();
            for (id, action) in rules {
                let entry = catalogue.iter().find(|entry| entry.id == id);
                match entry.map(|entry| entry.layer) {
                    Some(Layer::Rust) if id == probe::RULE => {
                        return Err(PolicyError::AdmissionProbe { kind, id });
                    }
                    Some(Layer::Rust) => {}
                    Some(layer) => {
                        let layer = layer.as_str();
                        return Err(PolicyError::Layer { kind, id, layer });
                    }
                    None => {
                        return Err(PolicyError::Rule { kind, id });
                    }
                }
                let Ok(known) = Action::deserialize(&action) else {
                    return Err(PolicyError::Action { kind, id, action });
                };
                actions.insert(id, known);
            }
            policy.rules.insert(kind, actions);
        }
        for (section, value) in mapping("settings", file.get("settings"))? {
            let all = || validators.iter().filter_map(|ruleset| ruleset.settings());
            let Some(settings) = all().find(|settings| settings.section == section) else {
                let known: BTreeSet<_> = all().map(|settings| settings.section).collect();
                let known: Vec<_> = known.into_iter().collect();
                let known = known.join(", ");
                let problem = format!("the section is unknown; the sections are {known}");
                return Err(PolicyError::Settings { section, problem });
            };
            // The section has a name but no content.
            if value.is_null() {
                continue;
            }
            if let Err(problem) = (settings.validate)(&value) {
                return Err(PolicyError::Settings { section, problem });
            }
            for (kind, id, action) in (settings.actions)(&value) {
                if has_rule(validators, kind, id) {
                    let actions = policy.rules.entry(kind.to_owned()).or_default();
                    actions.entry(id.to_owned()).or_insert(action);
                }
            }
            policy.settings.insert(section, value);
        }
        Ok(policy)
    }
}

/// Returns true if a kind is registered and has a Rust rule of this id.
fn has_rule(validators: &ValidatorRegistry, kind: &str, id: &str) -> bool {
    let mut rulesets = validators.iter().filter(|ruleset| ruleset.kind() == kind);
    rulesets.any(|ruleset| {
        let mut rules = ruleset.rules().into_iter();
        rules.any(|rule| rule.layer == Layer::Rust && rule.id == id)
    })
}

/// Returns the entries at a path. A name without content has none.
fn mapping(path: &str, value: Option<&Value>) -> Result<Map<String, Value>, PolicyError> {
    let found = match value {
        None | Some(Value::Null) => return Ok(Map::new()),
        Some(Value::Object(entries)) => return Ok(entries.clone()),
        Some(Value::Array(_)) => "a list",
        Some(Value::String(_)) => "a text",
        Some(Value::Number(_)) => "a number",
        Some(Value::Bool(_)) => "a boolean",
    };
    let what = match path {
        "" => "the policy".to_owned(),
        path => format!("{path}: the value"),
    };
    Err(PolicyError::Shape(format!(
        "{what} is {found} and must be a mapping"
    )))
}
