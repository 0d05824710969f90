//! `lockstep check` and other commands, each run as a process.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::env::{database_without_warning, root};

/// Runs the program with the given standard input.
pub fn lockstep(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the process starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes())
        .expect("the process reads its input");
    child.wait_with_output().expect("the process ends")
}

/// Runs the program in a directory.
pub fn lockstep_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    let command = command.args(arguments).current_dir(directory);
    command.output().expect("the process ends")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub const INVALID: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: database.example.com/v1alpha1
kind: CloudDatabase
metadata:
  name: orders
spec:
  engine: postgres
  instanceClass: db.t4g.micro
  storage:
    sizeGib: 100
    maxSizeGib: 105
  credentials:
    username: user
    secretName: orders
  port: 80
  multiaz: true
";

#[test]
fn every_error_is_reported_with_its_line_and_exit_code_1() {
    let output = lockstep(&["check", "--output", "concise", "-"], INVALID);
    let lines: Vec<_> = text(&output.stdout).lines().map(String::from).collect();
    let expected = [
        "<stdin>:16:15: spec.credentials.username: Invalid value: \"user\": is reserved by postgres or RDS; choose another name [username-reserved]",
        "<stdin>:19:3: spec.multiaz: Forbidden: unknown field; did you mean `multiAz`? [spec.multiaz/unknown]",
        "<stdin>:18:9: spec.port: Invalid value: 80: spec.port in body should be greater than or equal to 1150 [spec.port/minimum]",
        "<stdin>:14:17: spec.storage.maxSizeGib: Invalid value: must be at least 10 % above `sizeGib`; raise it, or remove it to switch autoscaling off [max-size-above-size]",
    ];
    assert_eq!(lines[..4], expected, "{lines:#?}");
    assert!(
        text(&output.stderr).contains("1 checked, 1 invalid, 1 skipped (unknown kind)"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_text_output_underlines_the_characters_of_an_error() {
    let output = lockstep(&["check", "-"], INVALID);
    let expected = "\
error[spec.port/minimum]: spec.port: Invalid value: 80: spec.port in body should be greater than or equal to 1150
  --> <stdin>:18:9
   |
18 |   port: 80
   |         ^^
";
    let shown = text(&output.stdout);
    assert!(shown.contains(expected), "{shown}");
    assert!(!shown.contains('\u{1b}'), "colours are only for terminals");
}

#[test]
fn the_github_sarif_junit_and_json_outputs_contain_the_errors() {
    let github = text(&lockstep(&["check", "--output", "github", "-"], INVALID).stdout);
    let expected =
        "::error file=<stdin>,line=18,col=9,title=spec.port/minimum::spec.port: Invalid value: 80";
    assert!(github.contains(expected), "{github}");

    let sarif = lockstep(&["check", "--output", "sarif", "-"], INVALID).stdout;
    let sarif: Value = serde_json::from_slice(&sarif).expect("JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let port = results
        .iter()
        .find(|result| result["ruleId"] == "spec.port/minimum")
        .expect("the port");
    assert_eq!(port["level"], "error");
    assert_eq!(
        port["locations"][0]["physicalLocation"]["region"],
        serde_json::json!({"startLine": 18, "startColumn": 9})
    );
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .expect("rules");
    assert!(rules.iter().any(|rule| rule["id"] == "spec.port/minimum"));

    let junit = text(&lockstep(&["check", "--output", "junit", "-"], INVALID).stdout);
    assert!(
        junit.contains("tests=\"1\"") && junit.contains("failures=\"1\""),
        "{junit}"
    );
    assert!(
        junit.contains("CloudDatabase/orders") && junit.contains("[spec.port/minimum]"),
        "{junit}"
    );

    let json = lockstep(&["check", "--output", "json", "-"], INVALID).stdout;
    let json: Value = serde_json::from_slice(&json).expect("one line");
    assert_eq!(json["valid"], false);
    assert_eq!(json["errors"][2]["rule"], "spec.port/minimum");
}

#[test]
fn show_stored_prints_the_difference_to_the_object_that_the_cluster_would_store() {
    let output = lockstep(
        &["check", "--show-defaulted", "-"],
        &database_without_warning("orders").to_string(),
    );
    let shown = text(&output.stdout);
    assert!(
        shown.contains("+++ as stored") && shown.contains("+  port: 5432"),
        "{shown}"
    );
    assert!(
        !shown
            .lines()
            .any(|line| line.starts_with('-') && !line.starts_with("---")),
        "defaults only add lines: {shown}"
    );
}

#[test]
fn all_errors_are_shown_on_demand() {
    let mut object = database_without_warning("orders");
    let tags = (0..150).map(|index| (format!("t{index}"), Value::from(index)));
    object["spec"]["tags"] = tags.collect();
    let program: String = (0..150).map(|_| ".a = to_int(.b)\n").collect();
    let transform = serde_json::json!({"type": "remap", "inputs": ["in"], "source": program});
    let pipeline = serde_json::json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "sources": {"in": {"type": "kubernetes_logs"}},
            "transforms": {"t": transform},
            "sinks": {"out": {"type": "blackhole", "inputs": ["t"]}},
        },
    });
    // There are too many tags, too.
    for (object, count) in [(object, 151), (pipeline, 150)] {
        let errors = |options: &[&str], input: &str| -> Vec<String> {
            let arguments = [&["check"], options, &["-"]].concat();
            let output = lockstep(&arguments, input).stdout;
            let result: Value = serde_json::from_slice(&output).expect("one line");
            let errors = result["errors"].as_array().expect("errors").iter();
            errors.map(|error| error["rule"].to_string()).collect()
        };
        let written = object.to_string();
        let shown = errors(&["--output=json"], &written);
        assert_eq!(shown.len(), 101);
        assert_eq!(shown[100], "\"and-more\"");
        let request = serde_json::json!({"id": 1, "operation": "CREATE", "object": written});
        let request = request.to_string();
        for (options, input) in [
            (["--all-errors", "--output=json"], &written),
            (["--all-errors", "--input-format=jsonl"], &request),
        ] {
            let shown = errors(&options, input);
            assert_eq!(shown.len(), count);
            assert!(!shown.contains(&"\"and-more\"".to_owned()));
        }
    }
}

#[test]
fn objects_are_validated_by_a_crd_that_is_given() {
    let crd = root().join("tests/cases/probe/crd.json");
    let object = "apiVersion: celprobe.test/v1\nkind: Probe\nmetadata: {name: a}\nspec: {c01: 0, plainStrr: x}\n";
    let output = lockstep(
        &[
            "check",
            "--output",
            "concise",
            "--crd",
            &crd.to_string_lossy(),
            "-",
        ],
        object,
    );
    let shown = text(&output.stdout);
    assert!(
        shown.contains("<stdin>:4:13: spec.c01: Invalid value: 0: failed rule: self > 0"),
        "{shown}"
    );
    assert!(
        shown.contains("unknown field; did you mean `plainStr`?"),
        "{shown}"
    );
    let output = lockstep(
        &[
            "check",
            "--crd",
            &root().join("examples/valid").to_string_lossy(),
            "-",
        ],
        object,
    );
    assert!(
        text(&output.stderr)
            .contains("no CustomResourceDefinition found; --crd requires at least one"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_policy_changes_the_severity_of_a_rule_and_an_invalid_policy_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = directory.path().join("policy.yaml");
    let arguments = [
        "check",
        "--output",
        "concise",
        "--policy",
        &policy.to_string_lossy(),
        "-",
    ];
    let mut object = database_without_warning("a");
    object["spec"]["credentials"]["username"] = "user".into();
    std::fs::write(
        &policy,
        "rules:\n  CloudDatabase:\n    username-reserved: warn\n",
    )
    .expect("a file");
    let output = lockstep(&arguments, &object.to_string());
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text(&output.stdout).contains("warning: spec.credentials.username"),
        "{}",
        text(&output.stdout)
    );
    std::fs::write(
        &policy,
        "rules:\n  CloudDatabase:\n    username-preserved: warn\n",
    )
    .expect("a file");
    let output = lockstep(&arguments, &object.to_string());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr)
            .contains("rules.CloudDatabase.username-preserved: the rule is unknown"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn rules_are_listed_and_explained_and_the_committed_page_is_current() {
    let listed = text(&lockstep(&["rules", "--kind", "clouddatabase"], "").stdout);
    assert!(listed.contains("username-reserved"), "{listed}");
    let explained = text(&lockstep(&["rules", "engine-immutable"], "").stdout);
    assert!(
        explained.contains("self == oldSelf") && explained.contains("source    https://"),
        "{explained}"
    );
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("rules.md");
    lockstep(&["rules", "--output-file", &page.to_string_lossy()], "");
    let committed = std::fs::read_to_string(root().join("docs/rules.md")).expect("the page");
    assert_eq!(
        std::fs::read_to_string(page).expect("the page"),
        committed,
        "run `lockstep rules --output-file docs/rules.md`"
    );
}

#[test]
fn shell_completions_and_man_pages_are_written() {
    let completions = text(&lockstep(&["completions", "bash"], "").stdout);
    assert!(completions.contains("_lockstep"), "{completions}");
    let directory = tempfile::tempdir().expect("a directory");
    lockstep(&["man", &directory.path().to_string_lossy()], "");
    assert!(directory.path().join("lockstep-check.1").is_file());
}

#[test]
fn a_valid_document_and_the_examples_pass_with_exit_code_0() {
    let output = lockstep(
        &["check", "-"],
        &database_without_warning("orders").to_string(),
    );
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), ""),
        "{}",
        text(&output.stderr)
    );
    let valid = root().join("examples/valid");
    let output = lockstep(&["check", &valid.to_string_lossy()], "");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn an_update_is_validated_against_the_old_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let old = directory.path().join("old.json");
    std::fs::write(&old, database_without_warning("orders").to_string()).expect("a file");
    let mut shrunk = database_without_warning("orders");
    shrunk["spec"]["storage"]["sizeGib"] = 50.into();
    let output = lockstep(
        &["check", "--old-object", &old.to_string_lossy(), "-"],
        &shrunk.to_string(),
    );
    assert!(
        text(&output.stdout).contains("error[storage-shrink]"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_closed_standard_output_does_not_change_the_exit_code() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the process starts");
    drop(child.stdout.take());
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(INVALID.as_bytes())
        .expect("the process reads its input");
    let output = child.wait_with_output().expect("the process ends");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn an_update_is_not_validated_against_an_object_with_another_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let old = directory.path().join("old.json");
    std::fs::write(&old, database_without_warning("customers").to_string()).expect("a file");
    let arguments = ["check", "--old-object", &old.to_string_lossy(), "-"];
    let output = lockstep(&arguments, &database_without_warning("orders").to_string());
    let message = "--old-object is a different object: its `metadata.name` is \"customers\", expected \"orders\"";
    assert!(
        text(&output.stdout).contains(message),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn show_stored_omits_the_status_and_does_not_show_invalid_objects() {
    let mut object = database_without_warning("orders");
    object["status"] = serde_json::json!({"lastValidated": {"generation": 1}});
    let shown = |object: &Value| {
        let output = lockstep(&["check", "--show-defaulted", "-"], &object.to_string());
        text(&output.stdout)
    };
    let stored = shown(&object);
    assert!(stored.contains("\n-status:"), "{stored}");
    object["spec"]["storage"]["sizeGib"] = 1.into();
    let rejected = shown(&object);
    assert!(!rejected.contains("as stored"), "{rejected}");
    let output = lockstep(&["check", "--show-defaulted", "--output", "sarif", "-"], "");
    assert!(text(&output.stderr).contains("--show-defaulted requires --output full"));
}

/// Field names are arbitrary input; their control characters must not reach a terminal.
#[test]
fn control_characters_in_field_names_are_escaped() {
    let mut object = database_without_warning("orders");
    object["spec"]["\u{1b}[2Jx\ny"] = 1.into();
    let output = lockstep(&["check", "--output", "concise", "-"], &object.to_string());
    let printed = text(&output.stdout);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(
        printed.contains("spec.\\u{1b}[2Jx\\ny: Forbidden"),
        "{printed}"
    );
}

/// The reading end is closed from the start, so that the first write fails.
#[test]
fn commands_that_print_lists_succeed_if_standard_output_is_closed() {
    for arguments in [&["rules"][..], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(arguments)
            .stdout(writer)
            .output()
            .expect("the process ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}
