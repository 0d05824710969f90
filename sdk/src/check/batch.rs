//! Batch mode for programs: reads one validation request per line and writes one result per line.

use std::io::{BufRead, Write};

use lockstep_shared_validation::{
    LastValidated, ParsedJson, Policy, ValidationRequest, ValidationResult, Validator, Violation,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::check::crd_lookup::CrdLookup;

/// One line: the operation, and the objects as raw JSON text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    operation: Operation,
    object: String,
    #[serde(default)]
    old_object: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Operation {
    #[default]
    Create,
    Update,
}

/// Numbers of lines that were validated, were invalid, or could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) checked: usize,
    pub(crate) invalid: usize,
    pub(crate) unreadable: usize,
}

/// Validates every line and writes its result, in the order of the lines.
pub(crate) fn run(
    kinds: &CrdLookup,
    policy: &Policy,
    input: impl BufRead,
    out: &mut impl Write,
) -> std::io::Result<Count> {
    let mut count = Count::default();
    for line in input.split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let response = match serde_json::from_slice::<Line>(&line) {
            Ok(line) => respond(kinds, policy, &line, &mut count),
            Err(error) => {
                count.unreadable += 1;
                // The id may be readable even if the rest of the line is not valid.
                let id = serde_json::from_slice::<Value>(&line)
                    .map_or(Value::Null, |line| line["id"].clone());
                unreadable(&id, &format!("the line is not a valid request: {error}"))
            }
        };
        writeln!(out, "{response}")?;
    }
    Ok(count)
}

fn respond(kinds: &CrdLookup, policy: &Policy, line: &Line, count: &mut Count) -> Value {
    match validate(kinds, policy, line) {
        Ok(result) => {
            count.checked += 1;
            count.invalid += usize::from(!result.is_valid());
            json!({
                "id": line.id,
                "valid": result.is_valid(),
                "errors": findings(&result.errors, result.has_more_errors),
                "warnings": findings(&result.warnings, result.has_more_warnings),
            })
        }
        Err(problem) => {
            count.unreadable += 1;
            unreadable(&line.id, &problem)
        }
    }
}

fn validate(kinds: &CrdLookup, policy: &Policy, line: &Line) -> Result<ValidationResult, String> {
    let object = ParsedJson::parse(&line.object)
        .map_err(|error| format!("`object` is not JSON: {error}"))?;
    let old = match (&line.old_object, line.operation) {
        (Some(old), Operation::Update) => Some(
            ParsedJson::parse(old)
                .map_err(|error| format!("`oldObject` is not JSON: {error}"))?
                .value,
        ),
        (None, Operation::Update) => {
            return Err(
                "`operation` is `UPDATE`, so `oldObject` must contain the previous object".into(),
            );
        }
        (_, Operation::Create) => None,
    };
    let ruleset: &dyn Validator = kinds.get(&object.value)?;
    let last_validated = old.as_ref().and_then(LastValidated::from_status_of);
    let request =
        ValidationRequest::for_update(&object.value, old.as_ref(), last_validated.as_ref());
    let request = request.deny_unknown_fields().with_policy(policy);
    Ok(ruleset.validate(&request.with_duplicate_keys(&object.duplicate_keys)))
}

fn findings(violations: &[Violation], has_more: bool) -> Vec<Value> {
    let more = Violation::and_more(has_more);
    violations.iter().chain(&more).map(finding).collect()
}

fn finding(violation: &Violation) -> Value {
    json!({
        "type": violation.error.error_type.as_str(),
        "field": violation.error.path.to_string(),
        "detail": violation.error.detail,
        "hints": violation.error.hints,
        "message": violation.error.to_string(),
        "rule": violation.rule,
        "layer": violation.layer.as_str(),
    })
}

/// Returns the result for an object that cannot be read: it is invalid, whatever its rules are.
fn unreadable(id: &Value, problem: &str) -> Value {
    let error = json!({"type": "InternalError", "field": "<nil>", "detail": problem, "message": problem, "rule": "parse-error"});
    json!({"id": id, "valid": false, "errors": [error], "warnings": []})
}
