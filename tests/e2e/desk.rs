//! The desk, through its own door.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

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
    let output = lockstep(&["check", "--output", "short", "-"], INVALID);
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
fn for_people_the_very_characters_are_underlined() {
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
    assert!(!shown.contains('\u{1b}'), "colours are for terminals only");
}

#[test]
fn programs_get_the_findings_in_the_form_that_they_read() {
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
fn the_objects_of_a_list_and_of_a_pattern_are_judged_each() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [database("a"), database("b"), {"apiVersion": "v1", "kind": "Pod"}]});
    std::fs::write(directory.path().join("list.json"), list.to_string()).expect("a file");
    std::fs::write(directory.path().join("other.txt"), "no document").expect("a file");
    let pattern = directory.path().join("*.json");
    let output = lockstep(&["check", &pattern.to_string_lossy()], "");
    assert!(
        text(&output.stderr).contains("2 judged, 0 invalid, 1 of other kinds skipped"),
        "{}",
        text(&output.stderr)
    );
    let none = directory.path().join("*.yml");
    let output = lockstep(&["check", &none.to_string_lossy()], "");
    assert!(
        text(&output.stdout).contains("the pattern matches no file"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_unknown_kind_is_skipped_or_with_strict_refused() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    assert_eq!(lockstep(&["check", "-"], other).status.code(), Some(0));
    let output = lockstep(&["check", "--strict", "-"], other);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stdout).contains("no rules are known for kind `ConfigMap` in `v1`"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn what_the_cluster_would_store_is_shown_beside_what_is_written() {
    let output = lockstep(
        &["check", "--show-stored", "-"],
        &database("orders").to_string(),
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
        "defaults only add: {shown}"
    );
}

#[test]
fn objects_of_any_crd_are_judged_by_it() {
    let crd = root().join("tests/cases/probe/crd.json");
    let object = "apiVersion: celprobe.test/v1\nkind: Probe\nmetadata: {name: a}\nspec: {c01: 0, plainStrr: x}\n";
    let output = lockstep(
        &[
            "check",
            "--output",
            "short",
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
        text(&output.stderr).contains("--crd takes a CustomResourceDefinition"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn candidates_a_line_get_verdicts_a_line_in_their_order() {
    let valid = database("a").to_string();
    let mut shrunk = database("a");
    shrunk["spec"]["storage"]["sizeGib"] = 50.into();
    let lines = [
        serde_json::json!({"id": 1, "op": "create", "object": valid}),
        serde_json::json!({"id": "two", "op": "update", "object": shrunk.to_string(), "old": valid}),
        serde_json::json!({"id": 3, "op": "create", "object": "{\"kind\": 1, \"kind\": 2"}),
    ];
    let input = lines.map(|line| line.to_string()).join("\n");
    let output = lockstep(&["check", "--jsonl"], &input);
    let answers: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let valid: Vec<_> = answers
        .iter()
        .map(|answer| (&answer["id"], &answer["valid"]))
        .collect();
    assert_eq!(
        valid,
        [
            (&1.into(), &true.into()),
            (&"two".into(), &false.into()),
            (&3.into(), &false.into())
        ]
    );
    assert_eq!(answers[1]["errors"][0]["field"], "spec.storage.sizeGib");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_policy_decides_and_a_wrong_one_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = directory.path().join("policy.yaml");
    let arguments = [
        "check",
        "--output",
        "short",
        "--policy",
        &policy.to_string_lossy(),
        "-",
    ];
    let mut object = database("a");
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
        text(&output.stderr).contains("rules.CloudDatabase.username-preserved: no such rule"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn rules_are_listed_explained_and_written_as_committed() {
    let listed = text(&lockstep(&["rules", "--kind", "clouddatabase"], "").stdout);
    assert!(listed.contains("username-reserved"), "{listed}");
    let explained = text(&lockstep(&["rules", "storage-only-grows"], "").stdout);
    assert!(
        explained.contains("self >= oldSelf") && explained.contains("source    https://"),
        "{explained}"
    );
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("rules.md");
    lockstep(&["rules", "--write", &page.to_string_lossy()], "");
    let committed = std::fs::read_to_string(root().join("docs/rules.md")).expect("the page");
    assert_eq!(
        std::fs::read_to_string(page).expect("the page"),
        committed,
        "run `lockstep rules --write docs/rules.md`"
    );
}

#[test]
fn the_shell_is_helped() {
    let completions = text(&lockstep(&["completions", "bash"], "").stdout);
    assert!(completions.contains("_lockstep"), "{completions}");
    let directory = tempfile::tempdir().expect("a directory");
    lockstep(&["man", &directory.path().to_string_lossy()], "");
    assert!(directory.path().join("lockstep-check.1").is_file());
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
    write("latin.yaml", b"a: \xe9\n");
    write("scalar.yaml", b"just text\n");
    write("tabs.yaml", b"a:\n\tb: 1\n");
    write("windows.yaml", b"\xef\xbb\xbfkind: A\r\napiVersion: v1\r\n");
    write("bomb.yaml", bomb().as_bytes());
    write("deep.yaml", "[".repeat(100_000).as_bytes());
    std::fs::File::create(directory.path().join("huge.yaml"))
        .and_then(|file| file.set_len(1 << 30))
        .expect("a sparse file");
    std::os::unix::fs::symlink("/does/not/exist", directory.path().join("link.yaml"))
        .expect("a link");
    write("valid.json", database("orders").to_string().as_bytes());
    let folder = directory.path().to_string_lossy().into_owned();
    let output = lockstep(
        &[
            "check",
            "--output",
            "short",
            &folder,
            "/does/not/exist.yaml",
        ],
        "",
    );
    let complaints = text(&output.stdout);
    for complaint in [
        "binary.yaml: not text: it holds a zero byte",
        "broken.yaml:2:",
        "duplicate.yaml:2:1: cannot be read: duplicate mapping key: a",
        "latin.yaml: not UTF-8 text: byte 3 begins no character",
        "scalar.yaml:1:1: an object was expected here",
        "tabs.yaml:2:2: cannot be read: tabs disallowed",
        "YAML does not take tabs for indentation: use spaces",
        "bomb.yaml:",
        "deep.yaml:1:",
        "huge.yaml: larger than 64 MiB; split it",
        "link.yaml: the link leads nowhere",
        "/does/not/exist.yaml: No such file or directory",
    ] {
        assert!(
            complaints.contains(complaint),
            "`{complaint}` is not in: {complaints}"
        );
    }
    let summary = text(&output.stderr);
    assert!(
        summary.contains("1 judged, 0 invalid, 1 of other kinds skipped, 11 unreadable"),
        "{summary}"
    );
    assert_eq!(output.status.code(), Some(2));
}

/// Ten references to ten references to ten references...
fn bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    text
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
        text(&output.stdout).contains("error[storage-only-grows]"),
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
        text(&output.stdout).contains(complaint),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(output.status.code(), Some(2));
}
