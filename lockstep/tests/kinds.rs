//! Tests of the kinds of the shipped program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn manifests(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("manifests")
        .arg(folder)
        .args(arguments)
        .output()
        .expect("the program runs")
}

/// Returns the plurals of the installed kinds.
fn installed(arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = manifests(folder.path(), arguments);
    assert!(output.status.success(), "{output:?}");
    let entries = fs::read_dir(folder.path().join("crds")).expect("a folder");
    let names = entries.map(|entry| entry.expect("a file").file_name());
    let mut plurals: Vec<_> = names
        .filter_map(|name| {
            let name = name.to_str()?.strip_suffix(".yaml")?;
            (name != "kustomization").then(|| name.to_owned())
        })
        .collect();
    plurals.sort();
    plurals
}

#[test]
fn examples_are_installed_only_by_name_and_any_kind_can_be_excluded() {
    assert_eq!(installed(&[]), ["clouddatabases"]);
    assert_eq!(installed(&["--kinds=*,Echo"]), ["clouddatabases", "echoes"]);
    assert_eq!(installed(&["--kinds", "Echo"]), ["echoes"]);
    assert_eq!(
        installed(&["--kinds", "-CloudDatabase,*"]),
        Vec::<String>::new()
    );
}

#[test]
fn an_unknown_kind_is_reported_with_the_known_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = manifests(folder.path(), &["--kinds=Eko"]);
    assert!(!output.status.success(), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("'Eko'") && error.contains("CloudDatabase, Echo"),
        "{error}"
    );
}
