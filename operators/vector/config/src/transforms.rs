//! Validation of transforms beyond the schema of their options.

use lockstep_shared_validation::{FieldError, FieldPath};
use lockstep_vector_vrl::Purpose;
use serde_json::{Map, Value};
use vrl::path::{OwnedSegment, parse_target_path};

use crate::compilation::Compilation;
use crate::component::Component;
use crate::diagnostic::{Check, DiagnosticList};

/// Half a nanosecond: Vector rounds a shorter time to zero.
const SHORTEST_SECONDS: f64 = 5e-10;

/// Validates one transform.
pub(crate) fn validate(
    transform: &Component<'_>,
    compilation: &mut Compilation<'_>,
    problems: &mut DiagnosticList,
) {
    let path = FieldPath::new(transform.path());
    let mut condition = |option: &str| {
        if let Some(value) = transform.option(option) {
            validate_condition(value, compilation, &path.child(option), problems);
        }
    };
    match transform.kind() {
        Some("delay" | "filter") => condition("condition"),
        Some("sample" | "throttle") => condition("exclude"),
        Some("reduce") => {
            condition("starts_when");
            condition("ends_when");
        }
        Some("window") => {
            condition("flush_when");
            condition("forward_when");
        }
        _ => {}
    }
    match transform.kind() {
        Some("remap") => remap(transform, compilation, &path, problems),
        Some("sample") => sample(transform, &path, problems),
        Some("reduce") => {
            reduce(transform, &path, problems);
            merge_strategies(transform, &path, problems);
        }
        Some("delay") => delay(transform, &path, problems),
        Some("throttle") => throttle(transform, &path, problems),
        Some("route") => {
            let routes = transform.option("route").and_then(Value::as_object);
            for (name, value) in routes.into_iter().flatten() {
                validate_condition(value, compilation, &path.child("route").key(name), problems);
            }
        }
        Some("exclusive_route") => {
            let routes = transform.option("routes").and_then(Value::as_array);
            for (index, route) in routes.into_iter().flatten().enumerate() {
                let path = path.child("routes").index(index).child("condition");
                validate_condition(&route["condition"], compilation, &path, problems);
            }
        }
        _ => {}
    }
}

/// Validates a condition: either a program, or an object that names the language of its source.
fn validate_condition(
    value: &Value,
    compilation: &mut Compilation<'_>,
    path: &FieldPath,
    problems: &mut DiagnosticList,
) {
    match value {
        Value::String(source) => {
            compilation.validate(source, Purpose::Condition, path, problems);
        }
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let path = path.child("source");
            match (text("type"), text("source")) {
                (Some("vrl"), Some(source)) => {
                    compilation.validate(source, Purpose::Condition, &path, problems);
                }
                (Some("datadog_search"), Some(source)) => {
                    compilation.validate(source, Purpose::Search, &path, problems);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn remap(
    transform: &Component<'_>,
    compilation: &mut Compilation<'_>,
    path: &FieldPath,
    problems: &mut DiagnosticList,
) {
    let present = ["source", "file", "files"];
    let present: Vec<_> = present
        .into_iter()
        .filter(|name| transform.option(name).is_some())
        .collect();
    match present.as_slice() {
        [] => {
            let detail = "`remap` needs a program";
            problems.add(
                Check::Options,
                FieldError::required(path.child("source"), detail),
            );
        }
        ["source"] => {
            if let Some(source) = transform.option("source").and_then(Value::as_str) {
                let path = path.child("source");
                compilation.validate(source, Purpose::Remap, &path, problems);
            }
        }
        [option] => {
            let names = match transform.option(option) {
                Some(Value::String(name)) => vec![name.as_str()],
                Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
                _ => Vec::new(),
            };
            compilation.validate_files(&names, &path.child(option), problems);
        }
        [_, more, ..] => {
            let detail = "`remap` accepts only one of `source`, `file` and `files`";
            problems.add(
                Check::Options,
                FieldError::forbidden(path.child(more), detail),
            );
        }
    }
}

fn sample(transform: &Component<'_>, path: &FieldPath, problems: &mut DiagnosticList) {
    let has = |option: &str| transform.option(option).is_some();
    let mut together = |one: &str, other: &str| {
        if has(one) && has(other) {
            let detail = format!("`sample` accepts only one of `{one}` and `{other}`");
            problems.add(
                Check::Options,
                FieldError::forbidden(path.child(other), detail),
            );
        }
    };
    together("rate", "ratio");
    together("ratio_field", "rate_field");
    together("key_field", "ratio_field");
    together("key_field", "rate_field");
    match (transform.option("rate"), transform.option("ratio")) {
        (None, None) => {
            let detail = "`sample` needs one of `rate` and `ratio`";
            problems.add(
                Check::Options,
                FieldError::required(path.child("rate"), detail),
            );
        }
        (Some(rate), None) if rate == 0 => {
            let error = FieldError::invalid(path.child("rate"), rate.clone(), "must be at least 1");
            problems.add(Check::Options, error);
        }
        (None, Some(ratio)) if ratio.as_f64().is_some_and(|ratio| ratio <= 0.0) => {
            let error =
                FieldError::invalid(path.child("ratio"), ratio.clone(), "must be greater than 0");
            problems.add(Check::Options, error);
        }
        _ => {}
    }
}

fn reduce(transform: &Component<'_>, path: &FieldPath, problems: &mut DiagnosticList) {
    if transform.option("starts_when").is_some() && transform.option("ends_when").is_some() {
        let detail = "`reduce` accepts only one of `starts_when` and `ends_when`";
        problems.add(
            Check::Options,
            FieldError::forbidden(path.child("ends_when"), detail),
        );
    }
}

/// Validates the keys of `merge_strategies`: paths of fields, not of array items.
fn merge_strategies(transform: &Component<'_>, path: &FieldPath, problems: &mut DiagnosticList) {
    let strategies = transform.option("merge_strategies");
    let strategies = strategies.and_then(Value::as_object);
    for name in strategies.into_iter().flat_map(Map::keys) {
        let is_field = parse_target_path(name)
            .is_ok_and(|target| target.path.segments.iter().all(OwnedSegment::is_field));
        if !is_field {
            let path = path.child("merge_strategies").key(name);
            let detail = "must be a field path without array indexes";
            let error = FieldError::invalid(path, name.as_str(), detail);
            problems.add(Check::Options, error);
        }
    }
}

fn delay(transform: &Component<'_>, path: &FieldPath, problems: &mut DiagnosticList) {
    if let Some(time) = transform.option("delay_ms").filter(|time| **time == 0) {
        let error = FieldError::invalid(
            path.child("delay_ms"),
            time.clone(),
            "must be greater than 0",
        );
        problems.add(Check::Options, error);
    }
}

fn throttle(transform: &Component<'_>, path: &FieldPath, problems: &mut DiagnosticList) {
    for option in ["threshold", "window_secs"] {
        if let Some(value) = transform.option(option)
            && value.as_f64().is_some_and(|value| value < SHORTEST_SECONDS)
        {
            let error =
                FieldError::invalid(path.child(option), value.clone(), "must be greater than 0");
            problems.add(Check::Options, error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lockstep_vector_vrl::InProcessCompiler;
    use serde_json::json;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::component::ComponentKind;
    use crate::validate::{ProgramScope, validate_config as validate_all};
    use crate::vrl_environment::VrlEnvironment;

    const NO_PROGRAM: &str = "(((";

    /// Returns a value with an invalid program in each option that holds a condition, or none if there is no such
    /// option.
    fn with_conditions(node: &Value) -> Option<Value> {
        if let Some(name) = node["$ref"].as_str() {
            return name
                .contains("conditions::AnyCondition")
                .then(|| NO_PROGRAM.into());
        }
        let within = |node: &Value| with_conditions(node);
        if let Some(value) = node.get("additionalProperties").and_then(within) {
            return Some(json!({"a": value}));
        }
        if let Some(value) = node.get("items").and_then(within) {
            return Some(json!([value]));
        }
        let properties = node["properties"].as_object().into_iter().flatten();
        let found = properties.filter_map(|(name, node)| Some((name.clone(), within(node)?)));
        let found: Map<_, _> = found.collect();
        (!found.is_empty()).then(|| found.into())
    }

    #[test]
    fn every_condition_is_compiled() {
        let catalogue = Catalogue::shipped();
        let mut validated = BTreeSet::new();
        for kind in catalogue.kinds(ComponentKind::Transform) {
            let entry = catalogue
                .entry(ComponentKind::Transform, kind)
                .expect("the catalogue has this type");
            let options = catalogue.options(entry).node();
            let Some(Value::Object(conditions)) = with_conditions(options) else {
                continue;
            };
            for (option, value) in conditions {
                let config = json!({
                    "sources": {"in": {"type": "demo_logs", "format": "json"}},
                    "transforms": {"t": {"type": kind, "inputs": ["in"], (option.as_str()): value}},
                    "sinks": {"out": {"type": "blackhole", "inputs": ["t"]}},
                });
                let found = validate_all(
                    catalogue,
                    &config,
                    &BTreeSet::new(),
                    &VrlEnvironment::shared(InProcessCompiler::boxed),
                    ProgramScope::Load,
                );
                let is_reported = found.iter().any(|problem| {
                    let path = problem.error.path.to_string();
                    let is_here = path.starts_with(&format!("transforms[t].{option}"));
                    problem.check == Check::Programs && is_here
                });
                assert!(is_reported, "{kind}.{option}: {found:?}");
                validated.insert((kind, option));
            }
        }
        assert!(validated.len() >= 10, "{validated:?}");
    }
}
