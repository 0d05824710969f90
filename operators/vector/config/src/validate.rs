//! Validation of a whole configuration.

use std::collections::BTreeSet;

use lockstep_shared_validation::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::catalogue::Catalogue;
use crate::compilation::Compilation;
use crate::component::{ComponentKind, components};
use crate::diagnostic::{Check, Diagnostic, DiagnosticList};
use crate::vrl_environment::VrlEnvironment;
use crate::{
    encodings, limits, listen_address, nulls, option_diagnostics, programs, toml_compat, topology,
    transforms,
};

/// Programs that are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramScope {
    /// Programs of transforms, which Vector compiles while it loads a configuration.
    Load,
    /// All programs, with those of codecs, authentication and queries, which Vector compiles when it builds a component.
    Start,
}

/// Validates a configuration as Vector does, without its environment, and returns errors and warnings.
///
/// Programs must not call the `denied` functions.
#[must_use]
pub fn validate_config(
    catalogue: &Catalogue,
    config: &Value,
    denied: &BTreeSet<String>,
    environment: &VrlEnvironment,
    programs: ProgramScope,
) -> Vec<Diagnostic> {
    let mut problems = DiagnosticList::default();
    let Value::Object(fields) = config else {
        let detail = "a configuration must be a mapping with `sources`, `transforms` and `sinks`";
        let error = option_diagnostics::mistyped(FieldPath::root(), config, detail);
        problems.add(Check::Readable, error);
        return problems.into_diagnostics();
    };
    if let Some(error) = limits::exceeded(fields, environment.components) {
        problems.add(Check::Limits, error);
        return problems.into_diagnostics();
    }
    let fields = &*nulls::without_optional(catalogue, fields);
    for family in ComponentKind::ALL {
        if let Some(block) = fields.get(family.block())
            && !block.is_object()
        {
            let detail = format!("must be a mapping of names to {}", family.block());
            let path = FieldPath::new(family.block());
            let error = option_diagnostics::mistyped(path, block, &detail);
            problems.add(Check::Options, error);
        }
    }
    globals(catalogue, fields, &mut problems);
    let mut compilation = Compilation::of(catalogue, fields, denied, environment);
    for component in components(fields) {
        let path = FieldPath::new(component.path());
        toml_compat::validate(component.value, &path.lazy(), &mut problems);
        option_diagnostics::validate(catalogue, &component, &mut problems);
        if component.family == ComponentKind::Sink {
            encodings::validate(&component, &mut problems);
        }
        if component.family == ComponentKind::Transform {
            transforms::validate(&component, &mut compilation, &mut problems);
        } else if compilation.is_restricted() || programs == ProgramScope::Start {
            // Even if they do not matter yet, they must not call denied functions.
            programs::validate(&component, &mut compilation, &mut problems);
        }
    }
    topology::validate(catalogue, fields, &mut problems);
    listen_address::validate(fields, &mut problems);
    problems.into_diagnostics()
}

fn globals(catalogue: &Catalogue, fields: &Map<String, Value>, problems: &mut DiagnosticList) {
    let blocks = ComponentKind::ALL.map(ComponentKind::block);
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
    toml_compat::validate(&beside, &FieldPath::root().lazy(), problems);
    option_diagnostics::validate_globals(catalogue, &beside, problems);
}

/// Validates the parameters of moving averages.
fn averages(fields: &Map<String, Value>, problems: &mut DiagnosticList) {
    for (name, below, detail) in [
        (
            "latency_ewma_alpha",
            1.0,
            "must be greater than 0 and less than 1",
        ),
        (
            "buffer_utilization_ewma_half_life_seconds",
            // The place of one that is not a number.
            f64::MAX,
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
