//! Secrets: references of pipelines become references to one backend of Vector, which reads files.
//!
//! Vector replaces a reference in the text of its configuration before it parses it. So the files of all pipelines are in
//! one folder, and no pipeline can name the file of another one: a name of a file has the prefix of its pipeline, and
//! every reference is rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use lockstep_vector_api::{ComponentNamespace, SecretSource};
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::pipeline::PipelineKey;

/// Folder in which Vector finds the secrets, one file for each.
pub const FOLDER: &str = "/etc/vector/secrets";

/// Name of the backend in the configuration.
const BACKEND: &str = "k8s";

/// Maximum length of a key of a Secret.
const LONGEST_KEY: usize = 253;

/// Pattern of references, as in Vector from 0.58 on: before, the name of a backend has no hyphen. A rewritten reference is one for all
/// versions.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"SECRET\[(?P<name>[[:word:]\-]+)\.(?P<key>[[:word:].\-/]+)\]")
        .expect("the pattern is valid")
});

/// Values of Secrets, by the name of the file.
pub type SecretValues = BTreeMap<String, Vec<u8>>;

/// Key of a Secret that a pipeline refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretReference {
    /// Name of the file, and key in the Secret that is mounted at [`FOLDER`].
    pub file_name: String,
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// Key in the Secret.
    pub key: String,
}

/// Returns the option `secret` of the configuration.
pub(crate) fn backends() -> Value {
    json!({BACKEND: {"type": "directory", "path": FOLDER}})
}

/// Returns an error if the value of a secret cannot be put into the text of a configuration, which is JSON. The error does
/// not contain the value.
pub fn validate_value(value: &[u8]) -> Result<(), &'static str> {
    let Ok(text) = std::str::from_utf8(value) else {
        return Err("is not UTF-8");
    };
    if text.is_empty() {
        // The backend of Vector rejects it.
        return Err("is empty");
    }
    // An escape such as `\n` would be read as another text.
    let is_special = |c: char| matches!(c, '"' | '\\') || (c as u32) < 0x20;
    if text.contains(is_special) {
        return Err("contains a double quote, a backslash or a control character");
    }
    Ok(())
}

/// Checks whether a text contains a reference.
pub(crate) fn is_reference(text: &str) -> bool {
    REFERENCE.is_match(text)
}

/// Returns the text of a configuration with values in place of the references to them, as Vector does when it loads the
/// configuration. A reference without a value stays.
#[must_use]
pub fn resolve(text: &str, values: &SecretValues) -> String {
    let value = |found: &Captures<'_>| {
        let value = values
            .get(&found["key"])
            .filter(|_| &found["name"] == BACKEND);
        let value = value.and_then(|value| std::str::from_utf8(value).ok());
        value.unwrap_or(&found[0]).to_owned()
    };
    REFERENCE.replace_all(text, value).into_owned()
}

/// Replaces references in a value by the values of the Secrets, also in the names of its fields. Since no value can change the
/// text of a configuration in another way, see [`validate_value`], this is what Vector does.
pub(crate) fn resolve_in(value: &mut Value, values: &SecretValues) {
    match value {
        Value::String(text) if REFERENCE.is_match(text) => *text = resolve(text, values),
        Value::Array(items) => items.iter_mut().for_each(|item| resolve_in(item, values)),
        Value::Object(fields) => {
            if fields.keys().any(|name| REFERENCE.is_match(name)) {
                let all = std::mem::take(fields).into_iter();
                *fields = all
                    .map(|(name, item)| (resolve(&name, values), item))
                    .collect();
            }
            fields
                .values_mut()
                .for_each(|item| resolve_in(item, values));
        }
        _ => {}
    }
}

/// References of one pipeline.
pub(crate) struct SecretRewriter<'a> {
    pipeline: &'a PipelineKey,
    declared: &'a BTreeMap<String, SecretSource>,
    found: BTreeSet<SecretReference>,
}

impl<'a> SecretRewriter<'a> {
    pub(crate) fn new(
        pipeline: &'a PipelineKey,
        declared: &'a BTreeMap<String, SecretSource>,
    ) -> Self {
        Self {
            pipeline,
            declared,
            found: BTreeSet::new(),
        }
    }

    /// Returns the references that were found.
    pub(crate) fn into_references(self) -> Vec<SecretReference> {
        self.found.into_iter().collect()
    }

    /// Rewrites all references in a value, also in the names of its fields, because Vector replaces them there, too.
    pub(crate) fn rewrite(&mut self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) => {
                if let Some(rewritten) = self.rewrite_text(text)? {
                    *text = rewritten;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.rewrite(item)?;
                }
            }
            Value::Object(fields) => {
                let mut rewritten = Map::new();
                for (name, mut value) in std::mem::take(fields) {
                    self.rewrite(&mut value)?;
                    let name = self.rewrite_text(&name)?.unwrap_or(name);
                    rewritten.insert(name, value);
                }
                *fields = rewritten;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the text with rewritten references, or nothing if it contains none.
    fn rewrite_text(&mut self, text: &str) -> Result<Option<String>, String> {
        if !REFERENCE.is_match(text) {
            return Ok(None);
        }
        let mut problem = None;
        let rewritten = REFERENCE.replace_all(text, |found: &Captures<'_>| {
            match self.reference(&found["name"], &found["key"]) {
                Ok(reference) => {
                    let name = format!("SECRET[{BACKEND}.{}]", reference.file_name);
                    self.found.insert(reference);
                    name
                }
                Err(detail) => {
                    problem.get_or_insert(detail);
                    String::new()
                }
            }
        });
        let rewritten = rewritten.into_owned();
        problem.map_or(Ok(Some(rewritten)), Err)
    }

    fn reference(&self, alias: &str, key: &str) -> Result<SecretReference, String> {
        let Some(source) = self.declared.get(alias) else {
            return Err(format!(
                "`SECRET[{alias}.{key}]`: `spec.secret` has no `{alias}`"
            ));
        };
        let declared = source.namespace.as_deref().filter(|it| !it.is_empty());
        let namespace = match (&self.pipeline.namespace, declared) {
            (Some(own), None) => own,
            (None, Some(declared)) => declared,
            (Some(_), Some(_)) => {
                return Err(format!(
                    "`spec.secret.{alias}.namespace`: a VectorPipeline may refer only to Secrets of its own namespace; remove this field"
                ));
            }
            (None, None) => {
                return Err(format!(
                    "`spec.secret.{alias}.namespace`: a ClusterVectorPipeline is cluster-scoped; set the namespace of the Secret"
                ));
            }
        };
        // The alias contains no dot, so that the first one ends it.
        let prefix =
            ComponentNamespace::of(self.pipeline.namespace.as_deref(), &self.pipeline.name);
        let file_name = prefix.prepend_to(&format!("{alias}.{key}"));
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !file_name.chars().all(is_key) {
            return Err(format!(
                "`SECRET[{alias}.{key}]`: a key of a Secret has only letters, digits, `-`, `_` and `.`"
            ));
        }
        if file_name.len() > LONGEST_KEY {
            return Err(format!(
                "`SECRET[{alias}.{key}]`: with the names of the namespace and the pipeline, the name of the file has {} bytes, but Kubernetes allows {LONGEST_KEY}; shorten the name of the pipeline, the alias or the key",
                file_name.len()
            ));
        }
        Ok(SecretReference {
            file_name,
            namespace: namespace.to_owned(),
            name: source.name.clone(),
            key: key.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::SecretKind;

    use super::*;

    fn declared(names: &[(&str, Option<&str>)]) -> BTreeMap<String, SecretSource> {
        let sources = names.iter().map(|(alias, namespace)| {
            let source = SecretSource {
                kind: SecretKind::KubernetesSecret,
                name: format!("{alias}-secret"),
                namespace: namespace.map(str::to_owned),
            };
            ((*alias).to_owned(), source)
        });
        sources.collect()
    }

    fn rewritten(
        namespace: Option<&str>,
        name: &str,
        declared: &BTreeMap<String, SecretSource>,
        mut value: Value,
    ) -> Result<(Value, Vec<SecretReference>), String> {
        let key = PipelineKey {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let mut rewriter = SecretRewriter::new(&key, declared);
        rewriter.rewrite(&mut value)?;
        Ok((value, rewriter.into_references()))
    }

    #[test]
    fn references_become_files_of_the_pipeline() {
        let declared = declared(&[("es", None), ("es-2", None)]);
        // In Vector before 0.58, this is no reference.
        let (value, _) =
            rewritten(Some("a"), "p", &declared, json!("SECRET[es-2.user]")).expect("a reference");
        assert_eq!(value, "SECRET[k8s.a__p__es-2.user]");
        let foreign = rewritten(Some("a"), "p", &declared, json!("SECRET[es-3.user]"));
        foreign.expect_err("no such Secret");
        let value = json!({
            "user": "SECRET[es.user]", "url": ["http://SECRET[es.host]:SECRET[es.user]/"],
            "SECRET[es.user]": 1, "plain": "SECRET[es]",
        });
        let (value, references) =
            rewritten(Some("a"), "p-q", &declared, value).expect("references");
        let expected = json!({
            "user": "SECRET[k8s.a__p-q__es.user]",
            "url": ["http://SECRET[k8s.a__p-q__es.host]:SECRET[k8s.a__p-q__es.user]/"],
            "SECRET[k8s.a__p-q__es.user]": 1, "plain": "SECRET[es]",
        });
        assert_eq!(value, expected);
        let reference = |key: &str| SecretReference {
            file_name: format!("a__p-q__es.{key}"),
            namespace: "a".to_owned(),
            name: "es-secret".to_owned(),
            key: key.to_owned(),
        };
        assert_eq!(references, ["host", "user"].map(reference));
    }

    #[test]
    fn pipelines_whose_names_differ_only_in_dashes_have_different_files() {
        let declared = declared(&[("x", None), ("x__y", None)]);
        let file = |namespace, name, text: &str| {
            let (_, references) =
                rewritten(Some(namespace), name, &declared, text.into()).expect("a reference");
            references[0].file_name.clone()
        };
        let files = BTreeSet::from([
            file("team", "a-x", "SECRET[x.k]"),
            file("team-a", "x", "SECRET[x.k]"),
            file("team-a", "x", "SECRET[x__y.k]"),
            file("team-a", "x", "SECRET[x.y__k]"),
            file("team-a", "x", "SECRET[x.y.k]"),
        ]);
        assert_eq!(files.len(), 5, "{files:?}");
    }

    #[test]
    fn values_replace_references_to_their_files() {
        let values = BTreeMap::from([("a__p__s.k".to_owned(), b"v$1".to_vec())]);
        for (text, expected) in [
            ("x SECRET[k8s.a__p__s.k] y", "x v$1 y"),
            ("SECRET[k8s.a__p__s.other]", "SECRET[k8s.a__p__s.other]"),
            ("SECRET[other.a__p__s.k]", "SECRET[other.a__p__s.k]"),
        ] {
            assert_eq!(resolve(text, &values), expected);
        }
    }

    #[test]
    fn only_declared_secrets_of_the_own_namespace_are_read() {
        let declared = declared(&[("own", None), ("other", Some("b")), ("empty", Some(""))]);
        let found = |namespace, text: &str| {
            let found = rewritten(namespace, "p", &declared, text.into());
            found.map(|(_, references)| references[0].namespace.clone())
        };
        assert_eq!(found(Some("a"), "SECRET[own.k]").as_deref(), Ok("a"));
        assert_eq!(found(Some("a"), "SECRET[empty.k]").as_deref(), Ok("a"));
        assert_eq!(found(None, "SECRET[other.k]").as_deref(), Ok("b"));
        for (namespace, text, part) in [
            (Some("a"), "SECRET[k8s.b__p__own.k]", "has no `k8s`"),
            (
                Some("a"),
                "SECRET[other.k]",
                "only to Secrets of its own namespace",
            ),
            (None, "SECRET[own.k]", "set the namespace"),
            (Some("a"), "SECRET[own.a/../b]", "has only letters"),
        ] {
            let error = found(namespace, text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
        let long = format!("SECRET[own.{}]", "k".repeat(250));
        let error = found(Some("a"), &long).expect_err("too long");
        assert!(error.contains("260 bytes"), "{error}");
    }

    #[test]
    fn values_that_would_change_the_text_of_a_configuration_are_rejected() {
        for value in ["a", "a b", "ä/+=$", "\u{7f}"] {
            assert_eq!(validate_value(value.as_bytes()), Ok(()), "{value:?}");
        }
        for value in [&b""[..], b"a\"", b"\\", b"a\n", b"\0", b"\xff"] {
            assert!(validate_value(value).is_err(), "{value:?}");
        }
    }
}
