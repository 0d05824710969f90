//! Secrets of the backend `directory`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Reference to a secret: the name of a backend, and a key (`COLLECTOR` in Vector's `config/loading/secret.rs`).
pub(crate) const REFERENCE: &str = r"SECRET\[([[:word:]]+)\.([[:word:].\-/]+)\]";

/// Reads the values that a configuration refers to, and returns a digest of them.
pub(crate) fn digest(configuration: &Value) -> anyhow::Result<String> {
    let text = configuration.to_string();
    let pattern = Regex::new(REFERENCE)?;
    let references: BTreeSet<_> = pattern
        .captures_iter(&text)
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
        .collect();
    let mut digest = Sha256::new();
    for (backend, key) in references {
        let value = read(configuration, &backend, &key)?;
        for part in [&backend, &key, &value] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
    }
    let bytes = digest.finalize();
    let hex = bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    Ok(hex)
}

fn read(configuration: &Value, backend: &str, key: &str) -> anyhow::Result<String> {
    let options = &configuration["secret"][backend];
    if options["type"] != "directory" {
        bail!("the secret backend `{backend}` does not exist, or is not a directory");
    }
    let folder = options["path"].as_str().unwrap_or_default();
    let value = fs::read_to_string(Path::new(folder).join(key));
    let mut value = value.with_context(|| format!("cannot read the secret `{backend}.{key}`"))?;
    if options["remove_trailing_whitespace"] == true {
        value.truncate(value.trim_end().len());
    }
    if value.is_empty() {
        bail!("the secret `{backend}.{key}` is empty");
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_changes_with_each_value_and_contains_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |value: &str| fs::write(folder.path().join("n__p__s.key"), value);
        let configuration = json!({
            "secret": {"k8s": {"type": "directory", "path": folder.path()}},
            "sinks": {"out": {"default_api_key": "SECRET[k8s.n__p__s.key]"}},
        });
        let error = digest(&configuration).expect_err("the file does not exist");
        assert_eq!(
            error.to_string(),
            "cannot read the secret `k8s.n__p__s.key`"
        );
        write("").expect("written");
        let error = digest(&configuration).expect_err("an empty value");
        assert_eq!(error.to_string(), "the secret `k8s.n__p__s.key` is empty");
        write("first").expect("written");
        let first = digest(&configuration).expect("a digest");
        assert_eq!(digest(&configuration).expect("a digest"), first);
        write("second").expect("written");
        assert_ne!(digest(&configuration).expect("a digest"), first);
        assert!(!first.contains("first"));
    }

    #[test]
    fn a_reference_needs_its_backend() {
        let configuration = json!({"sinks": {"out": {"key": "SECRET[other.key]"}}});
        let error = digest(&configuration).expect_err("no backend").to_string();
        assert!(error.contains("`other` does not exist"), "{error}");
        digest(&json!({"sinks": {"out": {"key": "SECRET[key]"}}})).expect("no reference");
    }
}
