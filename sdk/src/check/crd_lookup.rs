//! Rulesets of the offline check: those of the built-in kinds, and those of the given CRDs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use lockstep_shared_validation::{Validator, ValidatorRegistry, unknown_keywords};
use serde_json::Value;

use crate::check::additional_version::AdditionalVersion;
use crate::check::diagnostic::on_one_line;
use crate::check::given_version::GivenVersion;
use crate::check::inputs;
use crate::check::kind_suggestion::{KnownKind, suggestion};
use crate::check::yaml::document;

/// All kinds that can be validated.
pub(crate) struct CrdLookup {
    own: ValidatorRegistry,
    /// Served versions of built-in kinds other than the validated ones, by kind, compiled when they are needed.
    additional: Vec<LazyVersions>,
    from_files: Vec<GivenVersion>,
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
        let (mut from_files, mut ignored) = (Vec::new(), Vec::new());
        for path in crds {
            let before = from_files.len();
            for source in inputs::find(std::slice::from_ref(path)) {
                let name = &source.name;
                let text = source.read().map_err(|error| format!("{name}: {error}"))?;
                let documents =
                    document::read_all(&text).map_err(|problem| format!("{name}:{problem}"))?;
                for document in documents {
                    definitions(document.to_value(), &mut |crd| {
                        let unknown = unknown_keywords(&crd).into_iter();
                        ignored.extend(unknown.map(|unknown| format!("{name}: version {unknown}")));
                        from_files.extend(GivenVersion::all_of(crd, name));
                    });
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
        warn_about(&ignored);
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
                [only] => only.compiled(),
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
        let mut from_files = self.from_files.iter();
        let given =
            from_files.find(|one| one.group == group && one.version == version && one.kind == kind);
        if let Some(given) = given {
            return given.compiled().map(Some);
        }
        let own = self.own.get(group, kind);
        if let Some(own) = own.filter(|ruleset| is_it(&ruleset.as_ref())) {
            ensure_compiled(own)?;
            return Ok(Some(own.as_ref()));
        }
        let additional = self.additional(group, kind)?.iter();
        Ok(additional.map(|one| one as &dyn Validator).find(is_it))
    }

    /// Returns the group, the kind and the version of each known kind.
    fn known(&self) -> impl Iterator<Item = KnownKind<'_>> {
        let own = self.own.iter().map(|ruleset| KnownKind {
            group: ruleset.group(),
            kind: ruleset.kind(),
            version: ruleset.version(),
        });
        let given = self.from_files.iter().map(|given| KnownKind {
            group: &given.group,
            kind: &given.kind,
            version: &given.version,
        });
        own.chain(given)
    }

    /// Returns the likely mistake behind an unknown kind, and its field.
    pub(crate) fn suggestion(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Option<(&'static str, String)> {
        suggestion(&self.known().collect::<Vec<_>>(), api_version, kind)
    }

    /// Returns the known versions of a kind, to report them if another version is requested.
    pub(crate) fn versions(&self, api_version: &str, kind: &str) -> Vec<String> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let from_files = self
            .from_files
            .iter()
            .filter(|one| one.group == group && one.kind == kind);
        let own = self
            .own
            .get(group, kind)
            .map(|ruleset| ruleset.version().to_owned());
        let additional = self.additional(group, kind).unwrap_or_default().iter();
        from_files
            .map(|one| one.version.clone())
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
/// Names the keywords of schemas that have no effect. One of them may be misspelt.
fn warn_about(ignored: &[String]) {
    let Some(first) = ignored.first() else {
        return;
    };
    let more = match ignored.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let first = on_one_line(first);
    eprintln!("warning: {first}: the API server drops this unknown keyword{more}");
}

fn definitions(mut object: Value, each: &mut impl FnMut(Value)) {
    if object["kind"] == "CustomResourceDefinition" {
        return each(object);
    }
    let items = object["items"].as_array_mut().map(std::mem::take);
    for item in items.into_iter().flatten() {
        definitions(item, each);
    }
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
    fn a_crd_that_cannot_be_used_is_an_error_of_its_objects_alone() {
        let crd = |kind: &str, pattern: &str| {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
            json!({
                "kind": "CustomResourceDefinition",
                "spec": {"group": "example.com", "names": {"kind": kind}, "versions": [
                    {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}},
                ]},
            })
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("crds.yaml");
        let text = format!("{}\n---\n{}\n", crd("Usable", "^a$"), crd("Unusable", "("));
        std::fs::write(&path, text).expect("a file");
        let kinds = CrdLookup::new(ValidatorRegistry::default(), &[path]).expect("two CRDs");
        let found = kinds.find("example.com/v1", "Usable");
        assert_eq!(
            found.map(|usable| usable.map(Validator::kind)),
            Ok(Some("Usable"))
        );
        let error = kinds.find("example.com/v1", "Unusable").err();
        let error = error.expect("it has a pattern that is none");
        let expected = "crds.yaml cannot be used: schema at a: pattern `(`";
        assert!(error.contains(expected), "{error}");
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
