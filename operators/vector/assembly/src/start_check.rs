//! Check that Vector starts with a configuration. One pipeline with which it does not would keep all of them from
//! running, so that none of this kind may be published.

use std::borrow::Cow;
use std::collections::BTreeSet;

use lockstep_shared_validation::ErrorType;
use lockstep_vector_api::{Compiler, OptOut, Program, VrlDiagnostic};
use lockstep_vector_config::{
    Check, Diagnostic, Interpolation, ProgramScope, VectorVersion, VrlEnvironment, validate_config,
    validate_http_hosts, validate_start_up,
};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::assembly::{Assembly, Rendered, join};
use crate::options::AssemblyOptions;
use crate::part::PipelinePart;
use crate::pipeline::PipelineProblem;
use crate::precedence::{self, PresentState};
use crate::secrets::SecretValues;
use crate::{globals, secrets};

/// Check that Vector starts, with the values of the Secrets that the configuration refers to.
pub struct StartCheck<'a> {
    /// Compiler of the programs.
    pub environment: &'a VrlEnvironment,
    /// Tells whether Vector replaces environment variables.
    pub interpolation: Interpolation,
    /// Version of Vector that runs, if the rules about its start were not compared with it. Only those count that it has.
    pub unmeasured: Option<VectorVersion>,
    /// Errors that count.
    pub extent: Extent,
    /// If true, a part that could not be checked must not be left out: another operator runs it, and its configuration is
    /// replaced only by one with all pipelines.
    pub requires_all: bool,
    /// Values of Secrets, and what runs now.
    pub present: PresentState<'a>,
    /// Fingerprints of parts that passed. They are not checked again; those of other parts are removed.
    pub passed: &'a mut BTreeSet<String>,
}

/// Errors that count in a check of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    Everything,
    /// Errors that the values of Secrets cause. All others are found elsewhere.
    SecretValues,
}

/// Configuration with which Vector starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Configuration.
    pub assembly: Assembly,
    /// If true, a part could not be checked, and is to be checked again soon.
    pub is_incomplete: bool,
}

/// Reason why there is no configuration that can be published.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StartError {
    /// The global options are invalid.
    #[error("Vector does not start with the options of the workload: {0}")]
    Options(String),
    /// A part could not be checked, for a reason that it may not have caused, and all are required. A later attempt may succeed.
    #[error("{pipeline} could not be checked: {message}", pipeline = .0.pipeline, message = .0.message)]
    Unclear(PipelineProblem),
}

/// Parts that can be checked together, those that cannot be used, and those that could not be checked.
#[derive(Default)]
struct CheckedParts {
    valid: Vec<PipelinePart>,
    invalid: Vec<PipelineProblem>,
    unclear: Vec<PipelineProblem>,
}

impl StartCheck<'_> {
    /// Assembles a configuration with which Vector starts, as [`join`](crate::join()). Pipelines with which it would not
    /// start are left out, and reported.
    ///
    /// # Errors
    ///
    /// If there is no such configuration.
    pub fn assemble(
        &mut self,
        options: &AssemblyOptions,
        rendered: Rendered,
    ) -> Result<Checked, StartError> {
        let Rendered { parts, problems } = rendered;
        let mut options = options.clone();
        if self.extent == Extent::Everything {
            let none = join(&options, &[], PresentState::none(), Vec::new());
            if let Some(error) = self.structure(&options, &none.config).first() {
                return Err(StartError::Options(error.error.to_string()));
            }
        }
        let checked = self.check_each(&options, parts);
        if let Some(problem) = checked.unclear.first()
            && self.requires_all
        {
            return Err(StartError::Unclear(problem.clone()));
        }
        let is_incomplete = !checked.unclear.is_empty();
        let mut parts = checked.valid;
        let mut problems = [problems, checked.invalid, checked.unclear].concat();
        loop {
            let assembly = join(&options, &parts, self.present, problems.clone());
            if self.extent == Extent::SecretValues {
                return Ok(Checked {
                    assembly,
                    is_incomplete,
                });
            }
            let culprits = self.culprits_of(&options, &assembly.parts);
            if culprits.is_empty() {
                let mut config = Cow::Borrowed(&assembly.config);
                if !assembly.secrets.is_empty() {
                    secrets::resolve_in(config.to_mut(), self.present.values);
                }
                let errors = self.structure(&options, &config);
                match errors.iter().find(|it| it.check != Check::Limits) {
                    None => {
                        return Ok(Checked {
                            assembly,
                            is_incomplete,
                        });
                    }
                    // The parts are valid, and what was made of them is not.
                    Some(_) if options.merge_sources => options.merge_sources = false,
                    Some(error) => {
                        let text = self.of_all(&options, &assembly.config, error);
                        return Err(StartError::Options(text));
                    }
                }
                continue;
            }
            parts.retain(|part| culprits.iter().all(|it| it.pipeline != part.pipeline));
            problems.extend(culprits);
        }
    }

    /// Checks each part alone, with its programs.
    fn check_each(&mut self, options: &AssemblyOptions, parts: Vec<PipelinePart>) -> CheckedParts {
        let mut passed = BTreeSet::new();
        let mut checked = CheckedParts::default();
        for part in parts {
            let resolved = part.resolved(self.present.values);
            let is_concerned =
                self.extent == Extent::Everything || matches!(resolved, Cow::Owned(_));
            if part.is_empty() || !is_concerned {
                checked.valid.push(part);
                continue;
            }
            let fingerprint = self.fingerprint(options, &resolved);
            if self.passed.contains(&fingerprint) {
                passed.insert(fingerprint);
                checked.valid.push(part);
                continue;
            }
            let config = together(options, &[&*resolved]);
            let mut errors = self.errors(options, &config, self.environment);
            if matches!(resolved, Cow::Owned(_)) {
                errors.extend(self.assumed_of_values(options, &part, &config));
            }
            errors.extend(self.http_hosts(options, &part, &resolved));
            if errors.iter().any(is_internal) {
                checked.unclear.push(PipelineProblem {
                    pipeline: part.pipeline.clone(),
                    message: unclear(&part, &errors),
                });
                // It runs now, and its check may have ended for a reason that another pipeline has caused.
                if self.present.published.has(&resolved, options) {
                    checked.valid.push(part);
                }
                continue;
            }
            match errors
                .first()
                .and_then(|error| self.cause(options, &part, error))
            {
                None => {
                    passed.insert(fingerprint);
                    checked.valid.push(part);
                }
                Some(problem) => checked.invalid.push(problem),
            }
        }
        *self.passed = passed;
        checked
    }

    /// Returns the errors by rules of other versions that only the values of Secrets cause: the author of the pipeline has seen no
    /// warning about them, and the last value runs on.
    fn assumed_of_values(
        &self,
        options: &AssemblyOptions,
        part: &PipelinePart,
        resolved: &Value,
    ) -> Vec<Diagnostic> {
        let assumed = |config: &Value| {
            let (opt_out, interpolation) = (OptOut::Administrator, self.interpolation);
            let mut found = validate_start_up(&options.catalogue, config, opt_out, interpolation);
            found.retain(|problem| self.is_assumed(problem));
            found
        };
        if self.unmeasured.is_none() {
            return Vec::new();
        }
        let seen = assumed(&together(options, &[part]));
        let mut found = assumed(resolved);
        found.retain(|problem| !seen.contains(problem));
        found
    }

    /// Returns true if a rule is one of another version of Vector than that which runs.
    fn is_assumed(&self, problem: &Diagnostic) -> bool {
        self.unmeasured
            .is_some_and(|version| !problem.is_of(version))
    }

    /// Returns the errors of URIs in Secrets with which only later versions of Vector do not start. What runs with them runs on.
    fn http_hosts(
        &self,
        options: &AssemblyOptions,
        part: &PipelinePart,
        resolved: &PipelinePart,
    ) -> Vec<Diagnostic> {
        if self.requires_all || self.present.published.has(resolved, options) {
            return Vec::new();
        }
        let is_replaced = |uri: &str| self.interpolation == Interpolation::On && uri.contains('$');
        let sinks = part.sinks.iter().filter(|(_, sink)| {
            let uri = sink["uri"].as_str().unwrap_or_default();
            secrets::is_reference(uri) && !is_replaced(uri)
        });
        let sinks = sinks.filter_map(|(id, _)| Some((id.clone(), resolved.sinks.get(id)?.clone())));
        let sinks: Map<String, Value> = sinks.collect();
        validate_http_hosts(&json!({"sinks": sinks}))
    }

    /// Describes the error of a part, if errors of this cause count.
    fn cause(
        &self,
        options: &AssemblyOptions,
        part: &PipelinePart,
        error: &Diagnostic,
    ) -> Option<PipelineProblem> {
        if self.extent == Extent::SecretValues {
            let errors = self.errors(options, &together(options, &[part]), self.environment);
            if !errors.is_empty() {
                return None;
            }
        }
        Some(self.problem(options, part, error))
    }

    /// Describes an error with the names that the author of the pipeline gave its components, and without values of Secrets.
    fn problem(
        &self,
        options: &AssemblyOptions,
        part: &PipelinePart,
        error: &Diagnostic,
    ) -> PipelineProblem {
        let message = if part.secrets.is_empty() {
            format!("spec.{}", error.error)
        } else {
            let errors = self.errors(options, &together(options, &[part]), self.environment);
            match errors.first() {
                Some(error) => format!("spec.{}", error.error),
                None => secret_problem(part, error, self.present.values),
            }
        };
        PipelineProblem {
            pipeline: part.pipeline.clone(),
            message: part.with_own_names(&message),
        }
    }

    /// Returns the parts that cannot run with the others. Of those that exclude each other, it is the one that others precede.
    fn culprits_of(
        &self,
        options: &AssemblyOptions,
        parts: &[PipelinePart],
    ) -> Vec<PipelineProblem> {
        let parts = parts.iter().filter(|part| !part.is_empty());
        let ordered = precedence::in_order(options, parts, self.present);
        let parts = ordered.into_iter().map(|claimant| TogetherPart {
            part: claimant.part,
            resolved: claimant.part.resolved(self.present.values),
        });
        self.culprits(options, &parts.collect::<Vec<_>>())
    }

    /// Returns the parts that cannot run with the others, by halving the configuration until the part is found.
    fn culprits(
        &self,
        options: &AssemblyOptions,
        parts: &[TogetherPart<'_>],
    ) -> Vec<PipelineProblem> {
        // Nothing alone is no configuration, and nothing is to blame for it.
        if parts.is_empty() {
            return Vec::new();
        }
        let joined = |parts: &[TogetherPart<'_>]| {
            let parts: Vec<_> = parts.iter().map(|joined| &*joined.resolved).collect();
            self.structure(options, &together(options, &parts))
        };
        let errors = joined(parts);
        let Some(error) = errors.first() else {
            return Vec::new();
        };
        if let [alone] = parts {
            return vec![self.problem(options, alone.part, error)];
        }
        let (first, second) = parts.split_at(parts.len() / 2);
        let mut culprits = self.culprits(options, first);
        culprits.extend(self.culprits(options, second));
        // The limits are those of one pipeline.
        let error = errors.iter().find(|it| it.check != Check::Limits);
        let (true, Some(error)) = (culprits.is_empty(), error) else {
            return culprits;
        };
        // Each half is valid, and both together are not: the last part of the shortest invalid beginning is to blame.
        let shortest = (first.len() + 1..parts.len())
            .find(|length| !joined(&parts[..*length]).is_empty())
            .unwrap_or(parts.len());
        let part = parts[shortest - 1].part;
        if parts.iter().all(|joined| joined.part.secrets.is_empty()) {
            return vec![self.problem(options, part, error)];
        }
        // The error may contain a value of another part.
        vec![PipelineProblem {
            pipeline: part.pipeline.clone(),
            message: "Vector does not start with it beside the other pipelines of the workload"
                .to_owned(),
        }]
    }

    /// Describes an error of a configuration of all pipelines, without values of Secrets.
    fn of_all(&self, options: &AssemblyOptions, config: &Value, error: &Diagnostic) -> String {
        if config.get("secret").is_none() {
            return error.error.to_string();
        }
        let errors = self.structure(options, config);
        errors.first().map_or_else(
            || "the values of Secrets together are invalid".to_owned(),
            |error| error.error.to_string(),
        )
    }

    /// Returns a fingerprint of a part and of what its check depends on.
    fn fingerprint(&self, options: &AssemblyOptions, part: &PipelinePart) -> String {
        let catalogue = options.catalogue.digest();
        let (extent, version, interpolation) = (self.extent, self.unmeasured, self.interpolation);
        format!(
            "{extent:?} {version:?} {interpolation:?} {catalogue:x} {}",
            part.hash()
        )
    }

    /// Returns the errors of a configuration, without those of its programs.
    fn structure(&self, options: &AssemblyOptions, config: &Value) -> Vec<Diagnostic> {
        let environment = VrlEnvironment {
            compiler: || Box::new(NoCompiler),
            limits: self.environment.limits,
            components: self.environment.components,
            read_file: |_| Ok(String::new()),
            check_file: self.environment.check_file,
        };
        self.errors(options, config, &environment)
    }

    fn errors(
        &self,
        options: &AssemblyOptions,
        config: &Value,
        environment: &VrlEnvironment,
    ) -> Vec<Diagnostic> {
        let none = BTreeSet::new();
        let catalogue = &*options.catalogue;
        let loading = validate_config(catalogue, config, &none, environment, ProgramScope::Start);
        let (opt_out, interpolation) = (OptOut::Administrator, self.interpolation);
        let starting = validate_start_up(catalogue, config, opt_out, interpolation);
        let all = loading.into_iter().chain(starting);
        let errors = all.filter(|problem| !problem.check.is_warning() && !self.is_assumed(problem));
        // Files of the host cannot be read here, and secrets in programs are a matter of tenants, not of the start.
        let errors =
            errors.filter(|it| !matches!(it.check, Check::ProgramFiles | Check::ProgramSecrets));
        errors.collect()
    }
}

/// Compiler for configurations whose programs are compiled elsewhere.
struct NoCompiler;

impl Compiler for NoCompiler {
    fn compile(&mut self, _: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        Ok(Vec::new())
    }
}

fn is_internal(error: &Diagnostic) -> bool {
    error.error.error_type == ErrorType::Internal
}

/// Returns a configuration of some parts.
fn together(options: &AssemblyOptions, parts: &[&PipelinePart]) -> Value {
    let mut config = globals::options(options);
    let mut has_secrets = false;
    for part in parts {
        has_secrets |= !part.secrets.is_empty();
        for (block, components) in part.configuration() {
            let block = config.entry(block).or_insert_with(|| Map::new().into());
            if let (Value::Object(block), Value::Object(components)) = (block, components) {
                block.extend(components);
            }
        }
    }
    if has_secrets {
        config.insert("secret".to_owned(), secrets::backends());
    }
    config.into()
}

/// Describes why a part could not be checked. With Secrets, the text of the error may contain a value.
fn unclear(part: &PipelinePart, errors: &[Diagnostic]) -> String {
    match errors.iter().find(|error| is_internal(error)) {
        Some(error) if part.secrets.is_empty() => {
            part.with_own_names(&format!("spec.{}", error.error))
        }
        _ => "the programs could not be compiled; the next attempt is soon".to_owned(),
    }
}

/// Describes an error that the value of a Secret causes, without the value.
fn secret_problem(part: &PipelinePart, error: &Diagnostic, values: &SecretValues) -> String {
    let path = error.error.path.to_string();
    let mut own = part.secrets.iter().filter_map(|secret| {
        let value = values.get(&secret.file_name)?;
        std::str::from_utf8(value).ok()
    });
    // A value may be the name of a field.
    let path = if own.any(|value| path.contains(value)) {
        String::new()
    } else {
        format!("spec.{path} is invalid: ")
    };
    let names = part.secrets.iter();
    let names = names.map(|secret| format!("`{}`", secret.name));
    let names: BTreeSet<_> = names.collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    format!(
        "{path}Vector does not start with the value of a Secret ({names}); correct the value that this field refers to"
    )
}

/// Part, as it is and with the values of its Secrets.
struct TogetherPart<'a> {
    part: &'a PipelinePart,
    resolved: Cow<'a, PipelinePart>,
}

#[cfg(test)]
mod tests;
