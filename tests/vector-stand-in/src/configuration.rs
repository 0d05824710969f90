//! Directory → configuration.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// Parts of a configuration that Vector reloads. All other fields are global options, with which it refuses a reload.
const RELOADED: [&str; 9] = [
    "api",
    "enrichment_tables",
    "healthchecks",
    "provider",
    "secret",
    "sinks",
    "sources",
    "tests",
    "transforms",
];

/// Reads all files of a directory and merges them. Folders are not read: Vector reads only those that are named after a
/// part of the configuration.
pub(crate) fn read(directory: &Path) -> anyhow::Result<Value> {
    let mut merged = Map::new();
    let entries = fs::read_dir(directory);
    let entries = entries.with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths.iter().filter(|path| path.is_file()) {
        match path.extension().and_then(|it| it.to_str()) {
            Some("json") => {}
            Some("yaml" | "yml" | "toml") => bail!("{} is not JSON", path.display()),
            _ => continue,
        }
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let file = serde_json::from_str(&text);
        let file = file.with_context(|| format!("{} is not an object", path.display()))?;
        merge(&mut merged, file)?;
    }
    if merged.is_empty() {
        bail!("{} has no configuration", directory.display());
    }
    Ok(Value::Object(merged))
}

fn merge(merged: &mut Map<String, Value>, file: Map<String, Value>) -> anyhow::Result<()> {
    for (name, value) in file {
        match (merged.get_mut(&name), value) {
            (Some(Value::Object(components)), Value::Object(more)) => {
                for (component, value) in more {
                    if components.insert(component.clone(), value).is_some() {
                        bail!("duplicate name in {name}: {component}");
                    }
                }
            }
            (Some(existing), value) if *existing != value => bail!("conflicting values of {name}"),
            (_, value) => drop(merged.insert(name, value)),
        }
    }
    Ok(())
}

/// Returns the names of the global options in which two configurations differ.
pub(crate) fn changed_global_options(before: &Value, after: &Value) -> Vec<String> {
    let fields = |config: &Value| config.as_object().cloned().unwrap_or_default();
    let (before, after) = (fields(before), fields(after));
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let changed = names
        .into_iter()
        .filter(|name| !RELOADED.contains(&name.as_str()) && before.get(*name) != after.get(*name));
    changed.cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_files(files: &[(&str, &str)]) -> anyhow::Result<Value> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        read(folder.path())
    }

    #[test]
    fn the_json_files_of_the_folder_are_merged() {
        let merged = read_files(&[
            ("agent.json", r#"{"data_dir": "/d", "sources": {"a": 1}}"#),
            ("agent-1.json", r#"{"data_dir": "/d", "sources": {"b": 2}}"#),
            ("secrets/key", "value"),
            ("notes.txt", "not a configuration"),
        ]);
        let expected = json!({"data_dir": "/d", "sources": {"a": 1, "b": 2}});
        assert_eq!(merged.expect("a configuration"), expected);
    }

    #[test]
    fn conflicts_and_other_formats_are_errors() {
        let one = ("a.json", r#"{"data_dir": "/d", "sources": {"a": 1}}"#);
        for (other, expected) in [
            (
                ("b.json", r#"{"sources": {"a": 1}}"#),
                "duplicate name in sources: a",
            ),
            (
                ("b.json", r#"{"data_dir": "/e"}"#),
                "conflicting values of data_dir",
            ),
            (("b.yaml", "sources: {}"), "b.yaml is not JSON"),
            (("b.json", "[]"), "b.json is not an object"),
        ] {
            let error = read_files(&[one, other]).expect_err("an error").to_string();
            assert!(error.ends_with(expected), "{error}");
        }
        assert!(read_files(&[]).is_err());
    }

    #[test]
    fn components_are_reloaded_and_global_options_are_not() {
        let before = json!({"data_dir": "/d", "sources": {"a": 1}, "expire_metrics_secs": 1});
        let mut after = before.clone();
        after["sources"] = json!({"b": 1});
        after["api"] = json!({"enabled": true});
        assert_eq!(changed_global_options(&before, &after), [""; 0]);
        after["expire_metrics_secs"] = json!(2);
        after["timezone"] = json!("UTC");
        let expected = ["expire_metrics_secs", "timezone"];
        assert_eq!(changed_global_options(&before, &after), expected);
    }
}
