//! `lockstep check --input-format=jsonl`: one validation request per input line, one validation result per output line.

use std::process::Output;

use serde_json::Value;

use crate::check::{lockstep, text};
use crate::env::database;

/// Results that `--input-format=jsonl` prints, line by line.
fn responses(output: &Output) -> Vec<Value> {
    let responses = text(&output.stdout);
    let responses = responses.lines().map(serde_json::from_str);
    responses.collect::<Result<_, _>>().expect("JSON")
}

#[test]
fn each_line_gets_a_validation_result_in_the_same_order() {
    let valid = database("a").to_string();
    let mut shrunk = database("a");
    shrunk["spec"]["storage"]["sizeGib"] = 50.into();
    let lines = [
        serde_json::json!({"id": 1, "operation": "CREATE", "object": valid}),
        serde_json::json!({"id": "two", "operation": "UPDATE", "object": shrunk.to_string(), "oldObject": valid}),
        serde_json::json!({"id": 3, "operation": "CREATE", "object": "{\"kind\": 1, \"kind\": 2"}),
    ];
    let input = lines.map(|line| line.to_string()).join("\n");
    let output = lockstep(&["check", "--input-format=jsonl"], &input);
    let responses = responses(&output);
    let valid: Vec<_> = responses
        .iter()
        .map(|response| (&response["id"], &response["valid"]))
        .collect();
    assert_eq!(
        valid,
        [
            (&1.into(), &true.into()),
            (&"two".into(), &false.into()),
            (&3.into(), &false.into())
        ]
    );
    assert_eq!(responses[1]["errors"][0]["field"], "spec.storage.sizeGib");
    assert_eq!(output.status.code(), Some(2));
}

/// Lines are validated as in the webhook, and each gets a result.
#[test]
fn lines_are_validated_with_the_policy_and_the_last_validated_values() {
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
        serde_json::json!({"id": "create", "operation": "CREATE", "object": reserved.to_string()});

    // After an edit that bypassed the webhook, the change back is allowed.
    let (mut edited, mut repaired) = (database("orders"), database("orders"));
    edited["spec"]["credentials"]["username"] = "bob".into();
    edited["status"] = serde_json::json!({"lastValidated": {
        "generation": 1,
        "values": {"spec.credentials.username": "alice", "spec.engine": "postgres",
            "spec.storage.sizeGib": 100, "spec.storage.type": "gp3"},
    }});
    repaired["spec"]["credentials"]["username"] = "alice".into();
    let update = serde_json::json!({"id": "update", "operation": "UPDATE",
        "object": repaired.to_string(), "oldObject": edited.to_string()});

    let input = format!(
        "{create}\n{{\"id\": 7, \"operation\": \"DELETE\", \"object\": \"{{}}\"}}\n{update}\n"
    );
    let output = lockstep(
        &[
            "check",
            "--input-format=jsonl",
            "--policy",
            &policy.to_string_lossy(),
        ],
        &input,
    );
    let responses = responses(&output);
    let results: Vec<_> = responses
        .iter()
        .map(|response| (response["id"].clone(), response["valid"].clone()))
        .collect();
    let expected = [
        ("create".into(), true.into()),
        (7.into(), false.into()),
        ("update".into(), true.into()),
    ];
    assert_eq!(results, expected, "{responses:#?}");
    assert_eq!(output.status.code(), Some(2));
}
