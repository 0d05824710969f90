//! Validation of a whole configuration.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use shared_validation::{FieldError, FieldPath};

use crate::catalogue::Catalogue;
use crate::compilation::Compilation;
use crate::component::{Family, components};
use crate::problem::{Check, Problem, Problems};
use crate::{
    addresses, encodings, limits, option_errors, programs, readable, topology, transforms,
};

/// Validates a configuration as Vector does, without its environment, and returns errors and warnings.
///
/// Programs must not call the `denied` functions.
#[must_use]
pub fn judge(catalogue: &Catalogue, config: &Value, denied: &BTreeSet<String>) -> Vec<Problem> {
    let mut problems = Problems::default();
    let Value::Object(fields) = config else {
        let detail = "a configuration must be a mapping with `sources`, `transforms` and `sinks`";
        let error = option_errors::mistyped(FieldPath::root(), config, detail);
        problems.add(Check::Readable, error);
        return problems.end();
    };
    if let Some(error) = limits::exceeded_by_components(fields) {
        problems.add(Check::Limits, error);
        return problems.end();
    }
    for family in Family::ALL {
        if let Some(block) = fields.get(family.block())
            && !block.is_object()
        {
            let detail = format!("must be a mapping of names to {}", family.block());
            let path = FieldPath::new(family.block());
            let error = option_errors::mistyped(path, block, &detail);
            problems.add(Check::Options, error);
        }
    }
    globals(catalogue, fields, &mut problems);
    let mut compilation = Compilation::of(fields, denied);
    for component in components(fields) {
        let path = FieldPath::new(component.path());
        readable::judge(component.value, &path, &mut problems);
        option_errors::judge(catalogue, &component, &mut problems);
        if component.family == Family::Sink {
            encodings::judge(&component, &mut problems);
        }
        if component.family == Family::Transform {
            transforms::judge(&component, &mut compilation, &mut problems);
        } else if compilation.is_restricted() {
            // Vector compiles these programs only when it builds the component. They are compiled here so that they
            // cannot call denied functions.
            programs::judge(&component, &mut compilation, &mut problems);
        }
    }
    topology::judge(catalogue, fields, &mut problems);
    addresses::judge(fields, &mut problems);
    problems.end()
}

fn globals(catalogue: &Catalogue, fields: &Map<String, Value>, problems: &mut Problems) {
    let blocks = Family::ALL.map(Family::block);
    let beside = fields
        .iter()
        .filter(|(name, _)| !blocks.contains(&name.as_str()));
    let beside: Map<String, Value> = beside
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if beside.is_empty() {
        return;
    }
    averages(&beside, problems);
    let beside = Value::Object(beside);
    readable::judge(&beside, &FieldPath::root(), problems);
    option_errors::judge_globals(catalogue, &beside, problems);
}

/// Validates the parameters of moving averages.
fn averages(fields: &Map<String, Value>, problems: &mut Problems) {
    for (name, below, detail) in [
        (
            "latency_ewma_alpha",
            1.0,
            "must be greater than 0 and less than 1",
        ),
        (
            "buffer_utilization_ewma_half_life_seconds",
            f64::INFINITY,
            "must be greater than 0",
        ),
    ] {
        let number = fields.get(name).and_then(Value::as_f64);
        if let Some(number) = number.filter(|number| *number <= 0.0 || *number >= below) {
            let error = FieldError::invalid(FieldPath::new(name), number, detail);
            problems.add(Check::Options, error);
        }
    }
}
