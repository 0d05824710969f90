//! The alias `cargo fast` runs every test target of the workspace but the slow ones.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Test targets that take minutes.
const SLOW: [&str; 5] = ["chaos", "e2e", "node", "steady", "tutorial"];

#[test]
fn the_alias_names_every_test_target_that_is_not_slow() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = std::fs::read_to_string(repository.join(".cargo/config.toml"));
    let config: toml::Table = config.expect("the file").parse().expect("TOML");
    let alias = config["alias"]["fast"].as_array().expect("a list");
    let words: Vec<_> = alias.iter().filter_map(toml::Value::as_str).collect();
    let pairs = words.windows(2);
    let named: BTreeSet<_> = pairs
        .filter(|pair| pair[0] == "--test")
        .map(|pair| pair[1].to_owned())
        .collect();

    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(&repository)
        .output()
        .expect("cargo is available");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let targets = packages
        .iter()
        .flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests: BTreeSet<_> = targets
        .filter(|target| target["kind"][0] == "test")
        .filter_map(|target| target["name"].as_str())
        .filter(|name| !SLOW.contains(name))
        .map(str::to_owned)
        .collect();
    assert!(tests.len() > 10, "{tests:?}");
    assert_eq!(named, tests);
}
