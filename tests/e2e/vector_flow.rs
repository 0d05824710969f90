//! Tests, traces and drawings of pipelines without Vector.

use std::fs;
use std::path::Path;

use crate::check::lockstep_in;

/// Pipeline with a route, a transform that only Vector runs, and tests.
const PIPELINE: &str = r#"
apiVersion: observability.kaasops.io/v1alpha1
kind: VectorPipeline
metadata: {name: logs, namespace: team}
spec:
  sources:
    in: {type: kubernetes_logs}
  transforms:
    parse:
      type: remap
      inputs: [in]
      drop_on_error: true
      source: ". = object!(parse_json!(.message))"
    by_level:
      type: route
      inputs: [parse]
      route: {error: '.level == "error"', debug: '.level == "debug"'}
    once: {type: dedupe, inputs: [by_level.debug]}
  sinks:
    errors: {type: blackhole, inputs: [by_level.error]}
    rest: {type: blackhole, inputs: [by_level._unmatched, once]}
  tests:
"#;

const PASSES: &str = r#"
    - name: errors have a route
      inputs: [{insert_at: parse, value: '{"level": "error"}'}]
      outputs: [{extract_from: by_level.error, conditions: ['.level == "error"']}]
"#;

const FAILS: &str = r#"
    - name: warnings have a route
      inputs: [{insert_at: parse, value: '{"level": "warn"}'}]
      outputs: [{extract_from: by_level.error, conditions: ["true"]}]
"#;

const IS_NOT_RUN: &str = r#"
    - name: debug lines are there once
      inputs: [{insert_at: parse, value: '{"level": "debug"}'}]
      outputs: [{extract_from: once, expected_event_count: 1}]
"#;

/// Runs a command of `lockstep vector` in a directory.
fn vector(directory: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = lockstep_in(directory, &[&["vector"], arguments].concat());
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    (printed, output.status.code())
}

fn directory(tests: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let pipeline = [&[PIPELINE], tests].concat().concat();
    fs::write(directory.path().join("pipeline.yaml"), pipeline).expect("a file");
    directory
}

#[test]
fn a_test_that_only_vector_can_run_has_not_passed() {
    for (tests, arguments, expected) in [
        (&[PASSES][..], &[][..], 0),
        (&[PASSES, FAILS], &[], 1),
        (&[PASSES, IS_NOT_RUN], &[], 2),
        (&[PASSES, IS_NOT_RUN], &["--allow-not-run"], 0),
        (&[FAILS, IS_NOT_RUN], &["--allow-not-run"], 1),
    ] {
        let directory = directory(tests);
        let arguments = [&["test", "pipeline.yaml"], arguments].concat();
        let (printed, code) = vector(directory.path(), &arguments);
        assert_eq!(code, Some(expected), "{printed}");
        if tests.contains(&IS_NOT_RUN) {
            let why = "not run: `once`: only Vector runs transforms of the type `dedupe`";
            assert!(printed.contains(why), "{printed}");
        }
    }
}

#[test]
fn check_runs_the_tests_of_a_pipeline() {
    let checked = |tests: &[&str]| {
        let directory = directory(tests);
        let output = lockstep_in(directory.path(), &["check", "pipeline.yaml"]);
        let printed = [&output.stdout[..], &output.stderr[..]].concat();
        (
            String::from_utf8_lossy(&printed).into_owned(),
            output.status.code(),
        )
    };
    let (printed, code) = checked(&[PASSES, IS_NOT_RUN]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("warning[pipeline-tests-run]: spec.tests[1]"),
        "{printed}"
    );
    let (printed, code) = checked(&[PASSES, FAILS]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("error[pipeline-tests]: spec.tests[1]"),
        "{printed}"
    );
}

/// A program can double a value at each line.
#[test]
fn a_test_that_exceeds_its_limits_has_failed_and_hides_no_other_failure() {
    let fails_before = r#"
    - name: not of the program
      inputs: [{insert_at: by_level, value: '{"level": "error"}'}]
      outputs: [{extract_from: by_level.error, conditions: ["false"]}]
"#;
    let directory = directory(&[fails_before, PASSES, FAILS]);
    let path = directory.path().join("pipeline.yaml");
    let pipeline = fs::read_to_string(&path).expect("the file");
    let doubled = ".a = string!(.a) + string!(.a); ".repeat(60);
    let source = format!("'.a = \"0123456789\"; {doubled} .level = \"error\"'");
    let pipeline = pipeline.replace("\". = object!(parse_json!(.message))\"", &source);
    fs::write(&path, pipeline).expect("a file");
    let why = "it takes more memory than 512 MiB";
    let (printed, code) = vector(directory.path(), &["test", "pipeline.yaml"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("test not of the program ... failed"),
        "{printed}"
    );
    assert!(printed.contains(why), "{printed}");
    assert!(
        printed.contains("0 passed, 2 failed, 1 not run"),
        "{printed}"
    );
    let output = lockstep_in(directory.path(), &["check", "pipeline.yaml"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("not of the program"), "{printed}");
    assert!(printed.contains(why), "{printed}");
}

#[test]
fn a_trace_shows_the_route_of_an_event_and_where_it_ends() {
    let directory = directory(&[PASSES]);
    let traced = |line: &str| {
        fs::write(directory.path().join("line.json"), line).expect("a file");
        vector(
            directory.path(),
            &["trace", "pipeline.yaml", "--event", "line.json"],
        )
    };
    let (printed, code) = traced(r#"{"message": "{\"level\": \"error\"}"}"#);
    assert_eq!(code, Some(0), "{printed}");
    let expected = "in\n  {\"message\":\"{\\\"level\\\": \\\"error\\\"}\"}\nparse (transform remap)\n  {\"level\":\"error\"}\nby_level (transform route)\n  by_level.error: {\"level\":\"error\"}\nerrors (sink blackhole)\n  {\"level\":\"error\"}\n";
    assert_eq!(printed.trim_end(), expected.trim_end());
    let (printed, code) = traced("text");
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("parse (transform remap) drops it: the program fails"),
        "{printed}"
    );
    let (printed, code) = traced(r#"{"message": "{\"level\": \"debug\"}"}"#);
    assert_eq!(code, Some(2), "{printed}");
    assert!(
        printed.contains("once (transform dedupe) is not run"),
        "{printed}"
    );
}

#[test]
fn a_graph_has_all_pipelines() {
    let directory = directory(&[PASSES]);
    let other = [PIPELINE, PASSES]
        .concat()
        .replace("name: logs", "name: other");
    fs::write(directory.path().join("other.yaml"), other).expect("a file");
    let drawn = |format: &str| {
        let files = ["graph", "pipeline.yaml", "other.yaml", "--format", format];
        let (printed, code) = vector(directory.path(), &files);
        assert_eq!(code, Some(0), "{printed}");
        for text in ["team/logs", "team/other", "by_level", "_unmatched"] {
            assert!(printed.contains(text), "{text}: {printed}");
        }
        printed
    };
    assert!(drawn("mermaid").starts_with("flowchart LR\n"));
    assert!(drawn("svg").contains("</svg>"));
}
