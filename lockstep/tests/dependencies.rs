//! Tests of the dependencies of the shipped program and of the SDK.

use std::path::Path;
use std::process::Command;

/// Returns the normal dependencies of a package without its default features, one line `NAME VERSION (FOLDER)` for
/// each.
fn dependencies(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges=normal",
            "--prefix=none",
            "--no-default-features",
            "--package",
            package,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is available");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        tree.contains("serde_json"),
        "the dependency tree lacks serde_json: {tree}"
    );
    tree.lines().map(str::to_owned).collect()
}

#[test]
fn the_shipped_program_depends_on_no_test_crate() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let repository = repository.canonicalize().expect("the repository");
    let tests = format!("({}/", repository.join("tests").display());
    let all = dependencies("lockstep");
    let own = format!("({}/", repository.display());
    assert!(
        all.iter().any(|line| line.contains(&own)),
        "the dependency tree shows no folders: {all:?}"
    );
    let found: Vec<_> = all.iter().filter(|line| line.contains(&tests)).collect();
    assert_eq!(found, Vec::<&String>::new());
}

#[test]
fn the_sdk_depends_on_neither_the_aws_sdk_nor_vrl_nor_opentelemetry_nor_an_operator() {
    let found: Vec<_> = dependencies("lockstep-sdk")
        .into_iter()
        .filter(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            let is_unwanted = |start: &&str| name.starts_with(start);
            ["aws-", "opentelemetry", "vrl"].iter().any(is_unwanted) || line.contains("/operators/")
        })
        .collect();
    assert_eq!(found, Vec::<String>::new());
}
