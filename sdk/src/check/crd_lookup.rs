//! Rulesets of the offline check: those of the built-in kinds, and those of the given CRDs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lockstep_shared_validation::{CrdValidator, Validator, ValidatorRegistry};
use serde_json::Value;

use crate::check::additional_version::AdditionalVersion;
use crate::check::inputs;
use crate::check::yaml::document;

/// All kinds that can be validated.
pub(crate) struct CrdLookup {
    own: ValidatorRegistry,
    /// Served versions of built-in kinds other than the validated ones, by kind, compiled when they are needed.
    additional: Vec<LazyVersions>,
    from_files: Vec<CrdValidator>,
}

/// Versions of a kind other than the validated one.
struct LazyVersions {
    ruleset: Arc<dyn Validator>,
    compiled: OnceLock<Result<Vec<AdditionalVersion>, String>>,
}

impl CrdLookup {
    /// Collects the built-in kinds and those of the CRDs in these files. A given CRD takes precedence over a
    /// built-in kind of the same name.
    pub(crate) fn new(own: ValidatorRegistry, crds: &[PathBuf]) -> Result<Self, String> {
        let mut from_files = Vec::new();
        for path in crds {
            let before = from_files.len();
            for source in inputs::find(std::slice::from_ref(path)) {
                let name = &source.name;
                let text = source.read().map_err(|error| format!("{name}: {error}"))?;
                let documents =
                    document::read_all(&text).map_err(|problem| format!("{name}:{problem}"))?;
                for document in documents {
                    definitions(&document.to_value(), &mut |crd| {
                        let versions = CrdValidator::compile_served(crd);
                        from_files.extend(versions.map_err(|error| format!("{name}: {error}"))?);
                        Ok(())
                    })?;
                }
            }
            // A folder with CRDs may contain other objects, too.
            if from_files.len() == before {
                return Err(format!(
                    "{}: no CustomResourceDefinition found; --crd requires at least one",
                    path.display()
                ));
            }
        }
        let additional = own.iter().map(|ruleset| LazyVersions {
            ruleset: Arc::clone(ruleset),
            compiled: OnceLock::new(),
        });
        Ok(Self {
            additional: additional.collect(),
            own,
            from_files,
        })
    }

    /// Returns the versions of a built-in kind other than the validated one.
    fn additional(&self, group: &str, kind: &str) -> Result<&[AdditionalVersion], String> {
        let mut kinds = self.additional.iter();
        let found = kinds
            .find(|versions| versions.ruleset.group() == group && versions.ruleset.kind() == kind);
        let Some(versions) = found else {
            return Ok(&[]);
        };
        let compiled = versions.compiled.get_or_init(|| {
            ensure_compiled(&versions.ruleset)?;
            AdditionalVersion::all_of(&versions.ruleset)
                .map_err(|error| format!("cannot compile the versions of {kind}: {error}"))
        });
        compiled.as_deref().map_err(Clone::clone)
    }

    /// Returns the validator for an object.
    pub(crate) fn get(&self, object: &Value) -> Result<&dyn Validator, String> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        match self.find(api_version, kind)? {
            Some(ruleset) => Ok(ruleset),
            // If only one CRD is given, an object of an unknown kind is validated by it, as one with a wrong kind.
            None => match self.from_files.as_slice() {
                [only] => Ok(only),
                _ => Err(format!(
                    "unknown kind `{kind}` in `{api_version}`; provide its CRD with --crd"
                )),
            },
        }
    }

    /// Returns the validator for a kind in this version.
    ///
    /// # Errors
    ///
    /// Its rules cannot be compiled.
    pub(crate) fn find(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<&dyn Validator>, String> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_it = |one: &&dyn Validator| {
            one.group() == group && one.version() == version && one.kind() == kind
        };
        let mut from_files = self.from_files.iter().map(|one| one as &dyn Validator);
        if let Some(found) = from_files.find(is_it) {
            return Ok(Some(found));
        }
        let own = self.own.get(group, kind);
        if let Some(own) = own.filter(|ruleset| is_it(&ruleset.as_ref())) {
            ensure_compiled(own)?;
            return Ok(Some(own.as_ref()));
        }
        let additional = self.additional(group, kind)?.iter();
        Ok(additional.map(|one| one as &dyn Validator).find(is_it))
    }

    /// Returns the likely mistake behind an unknown kind: its group is a built-in one, or the group is missing and
    /// a built-in kind has the name.
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
                    "apiVersion: it is missing; `{kind}` belongs to {}/{}",
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
                format!("kind: `{kind}` does not exist in {group}; known kinds: {known}"),
            )
        })
    }

    /// Returns the known versions of a kind, to report them if another version is requested.
    pub(crate) fn versions(&self, api_version: &str, kind: &str) -> Vec<String> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let from_files = self
            .from_files
            .iter()
            .filter(|one| one.group() == group && one.kind() == kind);
        let own = self
            .own
            .get(group, kind)
            .map(|ruleset| ruleset.version().to_owned());
        let additional = self.additional(group, kind).unwrap_or_default().iter();
        from_files
            .map(|one| one.version().to_owned())
            .chain(own)
            .chain(additional.map(|one| one.version().to_owned()))
            .collect()
    }
}

/// Compiles the rules of a kind, unless they are compiled.
pub(crate) fn ensure_compiled(ruleset: &Arc<dyn Validator>) -> Result<(), String> {
    let compiled = ruleset.ensure_compiled();
    compiled.map_err(|error| format!("cannot compile the rules of {}: {error}", ruleset.kind()))
}

/// Calls `each` for every CRD in a document, which may be a list of CRDs.
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

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::{Ruleset, ValidatedResource};
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::operator::test_kinds::Lamp;

    /// Kind whose schema cannot be compiled.
    #[derive(Deserialize)]
    struct Broken {}

    impl ValidatedResource for Broken {
        const GROUP: &'static str = "example.com";
        const VERSION: &'static str = "v1";
        const KIND: &'static str = "Broken";

        fn crd() -> Value {
            json!({})
        }

        fn example() -> Value {
            json!({})
        }
    }

    #[test]
    fn rules_that_cannot_be_compiled_are_an_error_of_their_kind_alone() {
        let own = ValidatorRegistry::default()
            .register(Arc::new(Ruleset::<Lamp>::lazy()))
            .register(Arc::new(Ruleset::<Broken>::lazy()));
        let kinds = CrdLookup::new(own, &[]).expect("no rules are compiled yet");
        let found = kinds.find("example.com/v1", "Lamp");
        assert_eq!(
            found.map(|lamp| lamp.map(Validator::kind)),
            Ok(Some("Lamp"))
        );
        for version in ["example.com/v1", "example.com/v2"] {
            let error = kinds.find(version, "Broken").err().expect("an error");
            let beginning = "cannot compile the rules of Broken: ";
            assert!(error.starts_with(beginning), "{error}");
        }
    }
}
