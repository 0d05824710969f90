//! Global options of Vector's own metrics, which the start applies after all components are built.

use std::time::Duration;

use lockstep_shared_validation::{FieldError, FieldPath};
use regex::Regex;
use serde_json::{Map, Value};

use crate::diagnostic::{Check, DiagnosticList};

/// Time until metrics expire.
const EXPIRY: &str = "expire_metrics_secs";

/// Older form of [`EXPIRY`].
const OLD_EXPIRY: &str = "expire_metrics";

/// Times until single metrics expire.
const SETS: &str = "expire_metrics_per_metric_set";

/// Period after which programs see new metrics.
const REFRESH: &str = "metrics_storage_refresh_period";

/// Message for a time that Vector cannot represent.
const PANICS: &str = "must be less than 2^64 seconds: Vector panics at start";

pub(crate) fn validate(config: &Map<String, Value>, problems: &mut DiagnosticList) {
    let mut report = |path: FieldPath, value: &Value, detail: &str| {
        let error = FieldError::invalid(path, value.clone(), detail);
        problems.add(Check::StartUp, error);
    };
    let expiry = config.get(EXPIRY).filter(|value| value.is_number());
    // A negative number turns the expiry off.
    match expiry.and_then(Value::as_f64) {
        Some(0.0) => report(
            FieldPath::new(EXPIRY),
            &config[EXPIRY],
            "must not be 0; a negative number turns the expiry off",
        ),
        Some(seconds) if seconds > 0.0 && duration(seconds).is_none() => {
            report(FieldPath::new(EXPIRY), &config[EXPIRY], PANICS);
        }
        _ => {}
    }
    if let Some(old) = config.get(OLD_EXPIRY) {
        let path = FieldPath::new(OLD_EXPIRY);
        if expiry.is_some() {
            let detail = format!("cannot be set beside `{EXPIRY}`; remove it");
            report(path, old, &detail);
        } else if [&old["secs"], &old["nanos"]]
            .iter()
            .all(|part| part.as_u64() == Some(0))
        {
            report(path, old, "must not be 0");
        }
    }
    let sets = config.get(SETS).and_then(Value::as_array);
    for (index, set) in sets.into_iter().flatten().enumerate() {
        let path = FieldPath::new(SETS).index(index);
        let own = &set["expire_secs"];
        match own.as_f64() {
            Some(seconds) if seconds <= 0.0 => {
                report(path.child("expire_secs"), own, "must be greater than 0");
            }
            Some(seconds) if duration(seconds).is_none() => {
                report(path.child("expire_secs"), own, PANICS);
            }
            _ => {}
        }
        for (path, pattern) in patterns(set, &path) {
            if pattern.as_str().is_some_and(|it| Regex::new(it).is_err()) {
                let detail = "is no regular expression: check the parentheses and brackets";
                report(path, pattern, detail);
            }
        }
    }
    if let Some(period) = config.get(REFRESH)
        && let Some(seconds) = period.as_f64()
        && duration(seconds).is_none_or(|period| period.is_zero())
    {
        let detail = "must be greater than 0 and less than 2^64 seconds: Vector panics at start";
        report(FieldPath::new(REFRESH), period, detail);
    }
}

/// Returns a number of seconds as Vector converts it, or none if the conversion panics.
fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the regular expressions that select the metrics of a set.
fn patterns<'a>(set: &'a Value, path: &FieldPath) -> Vec<(FieldPath, &'a Value)> {
    let is_pattern = |matcher: &Value| matcher["type"] == "regex";
    let mut patterns = Vec::new();
    if is_pattern(&set["name"]) {
        let path = path.child("name").child("pattern");
        patterns.push((path, &set["name"]["pattern"]));
    }
    let matchers = set["labels"]["matchers"].as_array();
    for (index, matcher) in matchers.into_iter().flatten().enumerate() {
        if is_pattern(matcher) {
            let path = path.child("labels").child("matchers").index(index);
            patterns.push((path.child("value_pattern"), &matcher["value_pattern"]));
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::catalogue::Catalogue;
    use crate::confinement::OptOut;
    use crate::interpolation::Interpolation;
    use crate::start_up::validate_start_up;

    fn paths(config: &Value) -> Vec<String> {
        let found = validate_start_up(
            Catalogue::shipped(),
            config,
            OptOut::Author,
            Interpolation::Off,
        );
        let paths = found.iter().map(|problem| problem.error.path.to_string());
        paths.collect()
    }

    #[test]
    fn times_of_metrics_are_those_that_vector_accepts() {
        let nothing: [&str; 0] = [];
        for valid in [
            json!({"expire_metrics_secs": -1}),
            json!({"expire_metrics_secs": 0.001}),
            json!({"expire_metrics": {"secs": 0, "nanos": 1}}),
            json!({"expire_metrics_per_metric_set": [{"expire_secs": 0.5}]}),
            json!({"metrics_storage_refresh_period": 1}),
        ] {
            assert_eq!(paths(&valid), nothing, "{valid}");
        }
        for (invalid, path) in [
            (json!({"expire_metrics_secs": -0.0}), "expire_metrics_secs"),
            (json!({"expire_metrics_secs": 1e20}), "expire_metrics_secs"),
            (
                json!({"expire_metrics": {"secs": 1, "nanos": 0}, "expire_metrics_secs": 1}),
                "expire_metrics",
            ),
            (
                json!({"expire_metrics_per_metric_set": [{"expire_secs": -1}]}),
                "expire_metrics_per_metric_set[0].expire_secs",
            ),
            (
                json!({"expire_metrics_per_metric_set": [{"expire_secs": 1e20}]}),
                "expire_metrics_per_metric_set[0].expire_secs",
            ),
            (
                json!({"expire_metrics_per_metric_set": [{
                    "expire_secs": 1,
                    "labels": {"type": "any", "matchers": [
                        {"type": "exact", "key": "a", "value": "("},
                        {"type": "regex", "key": "a", "value_pattern": "("},
                    ]},
                }]}),
                "expire_metrics_per_metric_set[0].labels.matchers[1].value_pattern",
            ),
            (
                json!({"metrics_storage_refresh_period": -1}),
                "metrics_storage_refresh_period",
            ),
            (
                json!({"metrics_storage_refresh_period": 1e-10}),
                "metrics_storage_refresh_period",
            ),
        ] {
            assert_eq!(paths(&invalid), [path], "{invalid}");
        }
    }
}
