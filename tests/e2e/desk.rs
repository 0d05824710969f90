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

/// What `--jsonl` answers, line by line.
fn answers(output: &Output) -> Vec<Value> {
    let answers = text(&output.stdout);
    let answers = answers.lines().map(serde_json::from_str);
    answers.collect::<Result<_, _>>().expect("JSON")
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
        "<stdin>:19:3: spec.multiaz: Forbidden: unknown field; did you mean `multiAz`? [spec.multiaz/unknown]",
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
        text(&output.stderr).contains("--crd takes CustomResourceDefinitions, there are none"),
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
    let answers = answers(&output);
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
    write("nan.yaml", b"kind: A\napiVersion: v1\na: .nan\n");
    write(
        "typo.yaml",
        b"apiVersion: database.example.com/v1alpha1\nkind: CloudDatabse\n",
    );
    write("unnamed.yaml", b"kind: CloudDatabase\n");
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
        "empty.yaml: holds no object",
        "nan.yaml:3:4: cannot be read: JSON has no such number",
        "typo.yaml:2:7: kind: `CloudDatabse` is no kind of database.example.com; it has `CloudDatabase`",
        "unnamed.yaml:1:1: apiVersion: it is missing; `CloudDatabase` is of database.example.com/v1alpha1",
        "bomb.yaml:7:10: cannot be read: more than 2000000 values",
        "latin.yaml: not UTF-8 text: byte 3 begins no character",
        "scalar.yaml:1:1: an object was expected here",
        "tabs.yaml:2:2: cannot be read: tabs disallowed",
        "YAML does not take tabs for indentation: use spaces",
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
        summary.contains("1 judged, 0 invalid, 1 of other kinds skipped, 15 unreadable"),
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

/// One document that cannot be read takes nothing away from those around it.
#[test]
fn documents_are_read_one_by_one() {
    let valid = database("orders").to_string();
    let input = format!("{INVALID}---\na: 1\na: 2\n---\n{valid}\n{valid}\n");
    let output = lockstep(&["check", "--output", "short", "-"], &input);
    let complaints = text(&output.stdout);
    assert!(complaints.contains("<stdin>:16:15: "), "{complaints}");
    let duplicate = "<stdin>:22:1: cannot be read: duplicate mapping key: a";
    assert!(complaints.contains(duplicate), "{complaints}");
    let summary = text(&output.stderr);
    assert!(
        summary.contains("3 judged, 1 invalid, 1 of other kinds skipped, 1 unreadable"),
        "{summary}"
    );
}

#[test]
fn what_a_cluster_gives_is_taken_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, content.to_string()).expect("a file");
        path.to_string_lossy().into_owned()
    };
    // `kubectl get -o json` names the namespace, what is applied seldom does.
    let mut stored = database("orders");
    stored["metadata"]["namespace"] = "shop".into();
    let old = file("old.json", &stored);
    let mut applied = database("orders");
    if let Some(metadata) = applied["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    let output = lockstep(&["check", "--old", &old, "-"], &applied.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));

    // `kubectl get crd -o json` gives a list; a folder of CRDs may hold a kustomization too.
    let crd = std::fs::read_to_string(root().join("tests/cases/scale/crd.json")).expect("a CRD");
    let crd: Value = serde_json::from_str(&crd).expect("JSON");
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [crd]});
    let crds = directory.path().join("crds");
    std::fs::create_dir(&crds).expect("a folder");
    file("crds/list.json", &list);
    std::fs::write(
        crds.join("kustomization.yaml"),
        "kind: Kustomization\nresources: [list.json]\n",
    )
    .expect("a file");
    let scaled = r#"{"apiVersion": "scale.test/v1", "kind": "Scaled", "metadata": {"name": "a"},
        "spec": {"inner": {"replicas": -1}}}"#;
    let output = lockstep(&["check", "--crd", &crds.to_string_lossy(), "-"], scaled);
    let told = text(&output.stdout);
    assert!(told.contains("spec.inner.replicas/scale"), "{told}");
    assert_eq!(output.status.code(), Some(1));

    let nothing = directory.path().join("nothing");
    std::fs::create_dir(&nothing).expect("a folder");
    let nothing = nothing.to_string_lossy();
    for arguments in [&["check", "--crd", &nothing, "-"][..], &["check", &nothing]] {
        let output = lockstep(arguments, scaled);
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(told.contains("the folder holds no .yaml"), "{told}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn what_is_stored_has_no_status_and_is_not_shown_of_what_is_refused() {
    let mut object = database("orders");
    object["status"] = serde_json::json!({"accepted": {"generation": 1}});
    let shown = |object: &Value| {
        let output = lockstep(&["check", "--show-stored", "-"], &object.to_string());
        text(&output.stdout)
    };
    let stored = shown(&object);
    assert!(stored.contains("\n-status:"), "{stored}");
    object["spec"]["storage"]["sizeGib"] = 1.into();
    let refused = shown(&object);
    assert!(!refused.contains("as stored"), "{refused}");
    let output = lockstep(&["check", "--show-stored", "--output", "sarif", "-"], "");
    assert!(text(&output.stderr).contains("--show-stored is for --output text"));
}

/// Names are whatever somebody wrote; a terminal obeys none of them.
#[test]
fn findings_stay_on_their_lines() {
    let mut object = database("orders");
    object["spec"]["\u{1b}[2Jx\ny"] = 1.into();
    let output = lockstep(&["check", "--output", "short", "-"], &object.to_string());
    let told = text(&output.stdout);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("spec.\\u{1b}[2Jx\\ny: Forbidden"), "{told}");
}

/// Lines are judged as the gate would judge them, and each is answered.
#[test]
fn candidates_a_line_are_judged_under_the_policy_and_what_was_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = directory.path().join("policy.yaml");
    std::fs::write(
        &policy,
        "rules: {CloudDatabase: {username-reserved: audit}}\n",
    )
    .expect("a file");
    let mut reserved = database("orders");
    reserved["spec"]["credentials"]["username"] = "user".into();
    let create =
        serde_json::json!({"id": "create", "op": "create", "object": reserved.to_string()});

    // After an unguarded edit, the way back is open.
    let (mut edited, mut repaired) = (database("orders"), database("orders"));
    edited["spec"]["credentials"]["username"] = "bob".into();
    edited["status"] = serde_json::json!({"accepted": {
        "generation": 1,
        "values": {"spec.credentials.username": "alice", "spec.engine": "postgres",
            "spec.storage.sizeGib": 100, "spec.storage.type": "gp3"},
    }});
    repaired["spec"]["credentials"]["username"] = "alice".into();
    let update = serde_json::json!({"id": "update", "op": "update",
        "object": repaired.to_string(), "old": edited.to_string()});

    let input =
        format!("{create}\n{{\"id\": 7, \"op\": \"delete\", \"object\": \"{{}}\"}}\n{update}\n");
    let output = lockstep(
        &["check", "--jsonl", "--policy", &policy.to_string_lossy()],
        &input,
    );
    let answers = answers(&output);
    let told: Vec<_> = answers
        .iter()
        .map(|answer| (answer["id"].clone(), answer["valid"].clone()))
        .collect();
    let expected = [
        ("create".into(), true.into()),
        (7.into(), false.into()),
        ("update".into(), true.into()),
    ];
    assert_eq!(told, expected, "{answers:#?}");
    assert_eq!(output.status.code(), Some(2));
}

/// Nobody reads from the start, so that the first write fails.
#[test]
fn whoever_stops_reading_does_no_harm_to_lists() {
    for arguments in [&["rules"][..], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(arguments)
            .stdout(writer)
            .output()
            .expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
}
