//! Batch mode: reads one configuration per line and writes one result per line.

use std::io::{self, BufRead, Write};

use lockstep_shared_validation::{FieldError, ParsedJson};
use lockstep_vector_api::Catalogue;
use serde_json::{Value, json};

use crate::vector::configuration::format::{self, Format};
use crate::vector::problems::problems;

/// Validates every line and writes its result, in the order of the lines. Returns true if all configurations are
/// valid.
pub(crate) fn run(
    catalogue: &Catalogue,
    input: impl BufRead,
    out: &mut impl Write,
    with_start: bool,
) -> io::Result<bool> {
    let mut is_valid = true;
    for line in input.split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let response = result(catalogue, &line, with_start);
        is_valid &= response["valid"] == true;
        writeln!(out, "{response}")?;
    }
    Ok(is_valid)
}

fn result(catalogue: &Catalogue, line: &[u8], with_start: bool) -> Value {
    let text = String::from_utf8_lossy(line);
    let mut read = match ParsedJson::parse(&text) {
        Ok(read) => read,
        Err(error) => {
            return unreadable(&Value::Null, &format::describe_json_error(&error));
        }
    };
    let id = read.value.get_mut("id").map_or(Value::Null, Value::take);
    if let Err(problem) = format::once(&read.duplicate_keys) {
        return unreadable(&id, &problem);
    }
    let config = match (read.value["config"].as_str(), read.value["format"].as_str()) {
        (Some(text), Some(name)) => match parsed(text, name) {
            Ok(config) => config,
            Err(problem) => return unreadable(&id, &problem),
        },
        _ => read.value["config"].take(),
    };
    let problems = problems(catalogue, &config, with_start);
    let (warnings, errors): (Vec<_>, Vec<_>) = problems
        .iter()
        .partition(|problem| problem.check.is_warning());
    let to_json = |problems: &[&lockstep_vector_api::Diagnostic]| -> Vec<Value> {
        problems
            .iter()
            .map(|problem| diagnostic(&problem.error))
            .collect()
    };
    json!({
        "id": id,
        "valid": errors.is_empty(),
        "errors": to_json(&errors),
        "warnings": to_json(&warnings),
    })
}

/// Parses a configuration in a format.
fn parsed(text: &str, format: &str) -> Result<Value, String> {
    let known = Format::named(format);
    let format =
        known.ok_or_else(|| format!("the format `{format}` is unknown; use yaml, json or toml"))?;
    let table = format::parse(text, format)?;
    Ok(format::to_json(toml::Value::Table(table)))
}

fn diagnostic(error: &FieldError) -> Value {
    json!({
        "type": error.error_type.as_str(),
        "field": error.path.to_string(),
        "message": error.body(),
        "hints": error.hints,
    })
}

fn unreadable(id: &Value, problem: &str) -> Value {
    let error = json!({"type": "InternalError", "field": "<nil>", "message": problem});
    json!({"id": id, "valid": false, "errors": [error], "warnings": []})
}
