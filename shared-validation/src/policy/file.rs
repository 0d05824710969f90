//! Policy file: its structure, and the check of all names in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::policy::{Action, Policy, PolicyError};
use crate::probe;
use crate::registry::ValidatorRegistry;
use crate::rule::Layer;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rules: Option<BTreeMap<String, Option<BTreeMap<String, Action>>>>,
    #[serde(default)]
    settings: Option<BTreeMap<String, Value>>,
}

impl Policy {
    /// Parses a policy and checks every name in it. `null` is the empty policy.
    ///
    /// # Errors
    ///
    /// If the structure is wrong, or a kind, rule, action or settings section is unknown or invalid.
    pub fn read(file: &Value, validators: &ValidatorRegistry) -> Result<Self, PolicyError> {
        if file.is_null() {
            return Ok(Self::default());
        }
        if !file.is_object() {
            return Err(PolicyError::Shape("the policy is not a mapping".to_owned()));
        }
        let file =
            File::deserialize(file).map_err(|error| PolicyError::Shape(error.to_string()))?;
        let mut policy = Self::default();
        for (kind, rules) in file.rules.into_iter().flatten() {
            let Some(ruleset) = validators.iter().find(|ruleset| ruleset.kind() == kind) else {
                let known: Vec<_> = validators.iter().map(|ruleset| ruleset.kind()).collect();
                let known = known.join(", ");
                return Err(PolicyError::Kind { kind, known });
            };
            let catalogue = ruleset.rules();
            for id in rules.iter().flat_map(BTreeMap::keys) {
                let entry = catalogue.iter().find(|entry| entry.id == *id);
                match entry.map(|entry| entry.layer) {
                    Some(Layer::Rust) if *id == probe::RULE => {
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
            let all = || validators.iter().filter_map(|ruleset| ruleset.settings());
            let Some(settings) = all().find(|settings| settings.section == section) else {
                let known: BTreeSet<_> = all().map(|settings| settings.section).collect();
                let known: Vec<_> = known.into_iter().collect();
                let problem = format!("unknown section; the sections are {}", known.join(", "));
                return Err(PolicyError::Settings { section, problem });
            };
            // The section has a name but no content.
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
}
