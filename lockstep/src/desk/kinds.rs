//! By which rules the desk judges: those of our kinds, and those of any CRD that is given.

use std::path::PathBuf;

use serde_json::Value;
use shared_validation::{CrdValidator, Validator, ValidatorRegistry};

use crate::desk::document;
use crate::desk::sources;

/// Every kind that can be judged here.
pub(crate) struct CrdLookup {
    own: ValidatorRegistry,
    given: Vec<CrdValidator>,
}

impl CrdLookup {
    /// Our kinds and those of the CRDs in these files. A CRD that is given stands before a kind of
    /// ours with the same name.
    pub(crate) fn new(own: ValidatorRegistry, crds: &[PathBuf]) -> Result<Self, String> {
        let mut given = Vec::new();
        for path in crds {
            let before = given.len();
            for source in sources::find(std::slice::from_ref(path)) {
                let name = &source.name;
                let text = source.read().map_err(|error| format!("{name}: {error}"))?;
                let documents =
                    document::read_all(&text).map_err(|problem| format!("{name}:{problem}"))?;
                for document in documents {
                    definitions(&document.to_value(), &mut |crd| {
                        let versions = CrdValidator::compile_served(crd);
                        given.extend(versions.map_err(|error| format!("{name}: {error}"))?);
                        Ok(())
                    })?;
                }
            }
            // Beside the CRDs of a folder there may be anything.
            if given.len() == before {
                return Err(format!(
                    "{}: --crd takes CustomResourceDefinitions, there are none",
                    path.display()
                ));
            }
        }
        Ok(Self { own, given })
    }

    /// What judges this object.
    pub(crate) fn get(&self, object: &Value) -> Result<&dyn Validator, String> {
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
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<&dyn Validator> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_it = |one: &&CrdValidator| {
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

    /// Why a kind that is not known was hardly meant: it stands in a group of ours, or would be known in
    /// some group if it named one.
    pub(crate) fn suggestion(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Option<(&'static str, String)> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if api_version.is_empty() {
            let meant = self.own.iter().find(|ruleset| ruleset.kind() == kind)?;
            return Some((
                "apiVersion",
                format!(
                    "apiVersion: it is missing; `{kind}` is of {}/{}",
                    meant.group(),
                    meant.version()
                ),
            ));
        }
        let known: Vec<_> = self
            .own
            .iter()
            .filter(|ruleset| ruleset.group() == group)
            .map(|ruleset| format!("`{}`", ruleset.kind()))
            .collect();
        (!known.is_empty()).then(|| {
            let known = known.join(", ");
            (
                "kind",
                format!("kind: `{kind}` is no kind of {group}; it has {known}"),
            )
        })
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

/// Every CRD in a document, which may be a list of them.
fn definitions(
    object: &Value,
    each: &mut impl FnMut(&Value) -> Result<(), String>,
) -> Result<(), String> {
    if object["kind"] == "CustomResourceDefinition" {
        return each(object);
    }
    let items = object["items"].as_array().into_iter().flatten();
    items
        .into_iter()
        .try_for_each(|item| definitions(item, each))
}
