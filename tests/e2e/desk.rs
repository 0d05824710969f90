//! The desk, through its own door.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::world::{database, root};

fn lockstep(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes())
        .expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const INVALID: &str = "\
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
fn every_error_is_named_with_its_line_and_exit_code_1() {
    let output = lockstep(&["check", "-"], INVALID);
    let lines: Vec<_> = text(&output.stdout).lines().map(String::from).collect();
    let expected = [
        "<stdin>:16:15: spec.credentials.username: Invalid value: \"user\": is reserved by postgres or RDS; choose another name [username-reserved]",
        "<stdin>:19:12: spec.multiaz: Forbidden: unknown field; did you mean `multiAz`? [spec.multiaz/unknown]",
        "<stdin>:18:9: spec.port: Invalid value: 80: spec.port in body should be greater than or equal to 1150 [spec.port/minimum]",
        "<stdin>:14:17: spec.storage.maxSizeGib: Invalid value: must be at least 10 % above `sizeGib`; raise it, or remove it to switch autoscaling off [max-size-above-size]",
    ];
    assert_eq!(lines[..4], expected, "{lines:#?}");
    assert!(
        text(&output.stderr).contains("1 judged, 1 invalid, 1 of other kinds skipped"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_valid_document_and_the_examples_pass_with_exit_code_0() {
    let output = lockstep(&["check", "-"], &database("orders").to_string());
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
fn what_cannot_be_read_is_named_with_exit_code_2_and_the_rest_is_judged() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, content: &[u8]| {
        std::fs::write(directory.path().join(name), content).expect("a file");
    };
    write("binary.yaml", b"\xff\xfe\x00");
    write("broken.yaml", b"a: [1, 2\nb: }");
    write("duplicate.yaml", b"a: 1\na: 2\n");
    write("empty.yaml", b"");
    write("valid.json", database("orders").to_string().as_bytes());
    let output = lockstep(
        &[
            "check",
            &directory.path().to_string_lossy(),
            "/does/not/exist.yaml",
        ],
        "",
    );
    let complaints = text(&output.stderr);
    for name in [
        "binary.yaml",
        "broken.yaml",
        "duplicate.yaml",
        "/does/not/exist.yaml",
    ] {
        assert!(
            complaints.contains(&format!("{name}: cannot be read")),
            "{name} is not named: {complaints}"
        );
    }
    assert!(
        complaints.contains("1 judged, 0 invalid, 0 of other kinds skipped, 4 unreadable"),
        "{complaints}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_change_is_judged_against_what_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let old = directory.path().join("old.json");
    std::fs::write(&old, database("orders").to_string()).expect("a file");
    let mut shrunk = database("orders");
    shrunk["spec"]["storage"]["sizeGib"] = 50.into();
    let output = lockstep(
        &["check", "--old", &old.to_string_lossy(), "-"],
        &shrunk.to_string(),
    );
    assert!(
        text(&output.stdout).contains("[storage-only-grows]"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_reader_who_has_seen_enough_does_no_harm() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(INVALID.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn a_change_is_not_judged_against_another_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let old = directory.path().join("old.json");
    std::fs::write(&old, database("customers").to_string()).expect("a file");
    let arguments = ["check", "--old", &old.to_string_lossy(), "-"];
    let output = lockstep(&arguments, &database("orders").to_string());
    let complaint = "--old is another object: its `metadata.name` is \"customers\", not \"orders\"";
    assert!(
        text(&output.stderr).contains(complaint),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(2));
}
