//! Inputs of `lockstep check`, and the errors for inputs that it cannot read.

use serde_json::Value;

use crate::check::{INVALID, lockstep, text};
use crate::env::{database, root};

#[test]
fn unreadable_inputs_are_reported_with_exit_code_2_and_the_others_are_validated() {
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
            "concise",
            &folder,
            "/does/not/exist.yaml",
        ],
        "",
    );
    let printed = text(&output.stdout);
    for message in [
        "binary.yaml: not text: it contains a zero byte",
        "broken.yaml:2:",
        "duplicate.yaml:2:1: cannot be read: duplicate mapping key: a",
        "empty.yaml: contains no object",
        "nan.yaml:3:4: cannot be read: JSON has no such number",
        "typo.yaml:2:7: kind: `CloudDatabse` does not exist in database.example.com; known kinds: `CloudDatabase`",
        "unnamed.yaml:1:1: apiVersion: it is missing; `CloudDatabase` belongs to database.example.com/v1alpha1",
        "bomb.yaml:7:10: cannot be read: more than 2000000 values",
        "latin.yaml: not UTF-8 text: the byte at offset 3 does not begin a character",
        "scalar.yaml:1:1: an object was expected here",
        "tabs.yaml:2:1: cannot be read: found character that cannot start any token",
        "YAML does not allow tabs for indentation: use spaces",
        "deep.yaml:1:",
        "huge.yaml: larger than 64 MiB; split it",
        "link.yaml: the symbolic link is broken",
        "/does/not/exist.yaml: cannot be read: it does not exist; check its path",
    ] {
        assert!(
            printed.contains(message),
            "`{message}` is not in: {printed}"
        );
    }
    let summary = text(&output.stderr);
    assert!(
        summary.contains("1 checked, 0 invalid, 1 skipped (unknown kind), 15 unreadable"),
        "{summary}"
    );
    assert_eq!(output.status.code(), Some(2));
}

/// YAML alias bomb: each level has ten references to the level below.
fn bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    text
}

/// A document that cannot be read does not affect the documents before and after it.
#[test]
fn documents_are_read_one_by_one() {
    let valid = database("orders").to_string();
    let input = format!("{INVALID}---\na: 1\na: 2\n---\n{valid}\n{valid}\n");
    let output = lockstep(&["check", "--output", "concise", "-"], &input);
    let printed = text(&output.stdout);
    assert!(printed.contains("<stdin>:16:15: "), "{printed}");
    let duplicate = "<stdin>:22:1: cannot be read: duplicate mapping key: a";
    assert!(printed.contains(duplicate), "{printed}");
    let summary = text(&output.stderr);
    assert!(
        summary.contains("3 checked, 1 invalid, 1 skipped (unknown kind), 1 unreadable"),
        "{summary}"
    );
}

#[test]
fn the_output_of_kubectl_get_is_accepted_as_input() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, content.to_string()).expect("a file");
        path.to_string_lossy().into_owned()
    };
    // `kubectl get -o json` prints the namespace, which manifests often omit.
    let mut stored = database("orders");
    stored["metadata"]["namespace"] = "shop".into();
    let old = file("old.json", &stored);
    let mut applied = database("orders");
    if let Some(metadata) = applied["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    let output = lockstep(&["check", "--old-object", &old, "-"], &applied.to_string());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));

    // `kubectl get crd -o json` prints a List; a folder of CRDs may contain a kustomization too.
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
    let printed = text(&output.stdout);
    assert!(printed.contains("spec.inner.replicas/scale"), "{printed}");
    assert_eq!(output.status.code(), Some(1));

    let nothing = directory.path().join("nothing");
    std::fs::create_dir(&nothing).expect("a folder");
    let nothing = nothing.to_string_lossy();
    for arguments in [&["check", "--crd", &nothing, "-"][..], &["check", &nothing]] {
        let output = lockstep(arguments, scaled);
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert!(
            printed.contains("the folder contains no .yaml"),
            "{printed}"
        );
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn each_object_of_a_list_and_each_file_of_a_pattern_is_validated() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [database("a"), database("b"), {"apiVersion": "v1", "kind": "Pod"}]});
    std::fs::write(directory.path().join("list.json"), list.to_string()).expect("a file");
    std::fs::write(directory.path().join("other.txt"), "no document").expect("a file");
    let pattern = directory.path().join("*.json");
    let output = lockstep(&["check", &pattern.to_string_lossy()], "");
    assert!(
        text(&output.stderr).contains("2 checked, 0 invalid, 1 skipped (unknown kind)"),
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
fn an_unknown_kind_is_skipped_or_with_strict_reported_as_an_error() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
    assert_eq!(lockstep(&["check", "-"], other).status.code(), Some(0));
    let output = lockstep(&["check", "--fail-on-unknown-kind", "-"], other);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stdout).contains("unknown kind `ConfigMap` in `v1`"),
        "{}",
        text(&output.stdout)
    );
}
