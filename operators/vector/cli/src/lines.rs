//! Batch mode: reads one configuration per line and writes one result per line.

use std::io::{self, BufRead, Write};

use lockstep_shared_validation::{FieldError, ParsedJson};
use lockstep_vector_api::{Catalogue, VectorVersion};
use serde_json::{Value, json};

use crate::configuration::format::{self, Format};
use crate::problems::problems;

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
    if !read.value.is_object() {
        let problem = "the line must be an object with `id` and `config`";
        return unreadable(&Value::Null, problem);
    }
    let id = read.value.get_mut("id").map_or(Value::Null, Value::take);
    if let Err(problem) = format::once(&read.duplicate_keys) {
        return unreadable(&id, &problem);
    }
    let config = match (read.value["config"].as_str(), read.value["format"].as_str()) {
        (Some(text), Some(name)) => match parsed(text, name, catalogue.number()) {
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
fn parsed(text: &str, format: &str, version: VectorVersion) -> Result<Value, String> {
    let known = Format::named(format);
    let format =
        known.ok_or_else(|| format!("the format `{format}` is unknown; use yaml, json or toml"))?;
    let table = format::parse(text, format, version)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_object_is_an_error_and_the_next_lines_are_read() {
        let lines = "[]\n5\n\"x\"\n{\"id\":1,\"config\":{}}\n";
        let mut out = Vec::new();
        let done = run(Catalogue::shipped(), lines.as_bytes(), &mut out, false);
        assert!(!done.expect("it is written"));
        let out = String::from_utf8(out).expect("UTF-8");
        let results: Vec<Value> = out
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(results.len(), 4);
        for result in &results[..3] {
            let message = result["errors"][0]["message"].as_str();
            assert!(
                message.is_some_and(|it| it.contains("must be an object")),
                "{result}"
            );
        }
        assert_eq!(results[3]["id"], 1);
    }
}
