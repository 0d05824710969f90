//! Programs that `remap` transforms read from files, in the commands that work without a cluster, and the limits of
//! `lockstep vector validate`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::check::{lockstep_in, text};

/// Returns a configuration with a `remap` transform that has these options.
fn configuration(options: &Value) -> Value {
    let mut transform = json!({"type": "remap", "inputs": ["in"]});
    for (name, value) in options.as_object().expect("options") {
        transform[name] = value.clone();
    }
    json!({
        "sources": {"in": {"type": "kubernetes_logs"}},
        "transforms": {"t": transform},
        "sinks": {"out": {"type": "blackhole", "inputs": ["t"]}},
    })
}

/// Returns what a command prints about a configuration, and its exit code.
fn validated(directory: &Path, options: &Value) -> (String, Option<i32>) {
    let config = configuration(options).to_string();
    fs::write(directory.join("vector.json"), config).expect("a file");
    let output = lockstep_in(directory, &["vector", "validate", "vector.json"]);
    (text(&output.stdout), output.status.code())
}

fn checked(directory: &Path, file: &str) -> (String, Option<i32>) {
    let pipeline = json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "ClusterVectorPipeline",
        "metadata": {"name": "example"},
        "spec": configuration(&json!({"file": file})),
    });
    fs::write(directory.join("pipeline.json"), pipeline.to_string()).expect("a file");
    let output = lockstep_in(directory, &["check", "pipeline.json"]);
    (text(&output.stdout), output.status.code())
}

#[test]
fn vector_validate_compiles_the_files_of_a_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    fs::write(directory.join("good.vrl"), ".a = 1").expect("a file");
    fs::write(directory.join("bad.vrl"), "\n.a = upcase(.b)\n").expect("a file");
    let (printed, code) = validated(directory, &json!({"file": "good.vrl"}));
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = validated(directory, &json!({"files": ["good.vrl", "good.vrl"]}));
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = validated(directory, &json!({"file": "bad.vrl"}));
    assert_eq!(code, Some(78), "{printed}");
    assert!(
        printed.contains("transforms[t].file: Invalid value: bad.vrl: line 2, column 6"),
        "{printed}"
    );
    let (printed, code) = validated(directory, &json!({"files": ["good.vrl", "none.vrl"]}));
    assert_eq!(code, Some(78), "{printed}");
    assert!(printed.contains("none.vrl"), "{printed}");
}

#[test]
fn check_compiles_the_files_below_the_working_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let below = directory.path().join("below");
    fs::create_dir(&below).expect("a directory");
    fs::write(below.join("good.vrl"), ".a = 1").expect("a file");
    fs::write(below.join("bad.vrl"), ".a = upcase(.b)").expect("a file");
    fs::write(directory.path().join("above.vrl"), "password").expect("a file");
    let (printed, code) = checked(&below, "good.vrl");
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = checked(&below, "bad.vrl");
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("bad.vrl: line 1, column 6"), "{printed}");
    for file in ["../above.vrl", "none.vrl", "/etc/hostname"] {
        let (printed, code) = checked(&below, file);
        assert_eq!(code, Some(1), "{printed}");
        let is_denied = printed.contains("the webhook and the controller cannot read");
        assert!(is_denied && !printed.contains("password"), "{printed}");
    }
}

#[test]
fn vector_validate_has_larger_limits_and_says_when_one_of_them_is_exceeded() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = |fields: usize| {
        let mut source = String::new();
        for field in 0..fields {
            writeln!(source, ".a{field} = {field}").expect("memory");
        }
        source
    };
    let (printed, code) = validated(directory.path(), &json!({"source": program(600)}));
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = validated(directory.path(), &json!({"source": program(3000)}));
    assert_eq!(code, Some(78), "{printed}");
    assert!(
        printed.contains("Not validated, because of a limit of lockstep"),
        "{printed}"
    );
}
