//! By which rules the desk judges: those of our kinds, and those of any CRD that is given.

use std::path::PathBuf;

use serde_json::Value;
use shared_validation::{CustomResource, Judge, Rulesets};

use crate::desk::document;
use crate::desk::sources;

/// Every kind that can be judged here.
pub(crate) struct Kinds {
    own: Rulesets,
    given: Vec<CustomResource>,
}

impl Kinds {
    /// Our kinds and those of the CRDs in these files. A CRD that is given stands before a kind of
    /// ours with the same name.
    pub(crate) fn new(own: Rulesets, crds: &[PathBuf]) -> Result<Self, String> {
        let mut given = Vec::new();
        for source in sources::find(crds) {
            let name = &source.name;
            let text = source.read().map_err(|error| format!("{name}: {error}"))?;
            let documents =
                document::read(&text).map_err(|problem| format!("{name}: {}", problem.message))?;
            let before = given.len();
            for document in documents {
                let crd = document.to_value();
                if crd["kind"] == "CustomResourceDefinition" {
                    let versions = CustomResource::compile_served(&crd);
                    given.extend(versions.map_err(|error| format!("{name}: {error}"))?);
                }
            }
            if given.len() == before {
                return Err(format!(
                    "{name}: --crd takes a CustomResourceDefinition, this holds none"
                ));
            }
        }
        Ok(Self { own, given })
    }

    /// What judges this object.
    pub(crate) fn of(&self, object: &Value) -> Result<&dyn Judge, String> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        match self.find(api_version, kind) {
            Some(ruleset) => Ok(ruleset),
            // An object of no known kind, put before the one CRD that was given, is of a wrong kind.
            None => match self.given.as_slice() {
                [only] => Ok(only),
                _ => Err(format!(
                    "no rules are known for kind `{kind}` in `{api_version}`; give its CRD with --crd"
                )),
            },
        }
    }

    /// What judges objects of this kind in this version.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<&dyn Judge> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_it = |one: &&CustomResource| {
            one.group() == group && one.version() == version && one.kind() == kind
        };
        match self.given.iter().find(is_it) {
            Some(given) => Some(given),
            None => self
                .own
                .get(group, kind)
                .map(|ruleset| ruleset.as_ref())
                .filter(|ruleset| ruleset.version() == version),
        }
    }

    /// The versions in which a kind is known, for one who asks for another.
    pub(crate) fn versions(&self, api_version: &str, kind: &str) -> Vec<String> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let given = self
            .given
            .iter()
            .filter(|one| one.group() == group && one.kind() == kind);
        let own = self
            .own
            .get(group, kind)
            .map(|ruleset| ruleset.version().to_owned());
        given
            .map(|one| one.version().to_owned())
            .chain(own)
            .collect()
    }
}
