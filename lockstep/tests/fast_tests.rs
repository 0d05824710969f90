//! The alias `cargo fast` runs every test target of the workspace but the slow ones, and `.ci/run` runs all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Test targets that take minutes.
const SLOW: [&str; 6] = [
    "availability",
    "chaos",
    "deployment",
    "e2e",
    "memory",
    "tutorial",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the test targets that are named among the words of a command.
fn named<'a>(words: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let words: Vec<_> = words.into_iter().collect();
    let pairs = words.windows(2);
    pairs
        .filter(|pair| pair[0] == "--test")
        .map(|pair| pair[1].to_owned())
        .collect()
}

#[test]
fn the_alias_names_every_test_target_that_is_not_slow() {
    let config = std::fs::read_to_string(repository().join(".cargo/config.toml"));
    let config: toml::Table = config.expect("the file").parse().expect("TOML");
    let alias = config["alias"]["fast"].as_array().expect("a list");
    let named = named(alias.iter().filter_map(toml::Value::as_str));

    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(repository())
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

#[test]
fn ci_runs_the_test_command_of_the_readme() {
    const COMMAND: &str = "cargo test --workspace";
    let read = |name: &str| std::fs::read_to_string(repository().join(name)).expect("the file");
    assert!(read("README.md").contains(COMMAND));
    let script = read(".ci/run");
    let mut commands = script.lines().filter_map(|line| line.split_once("step "));
    assert!(
        commands.any(|(_, command)| command == format!("{COMMAND} --locked")),
        "{script}"
    );
}
