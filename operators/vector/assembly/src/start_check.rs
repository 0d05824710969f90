//! Check that Vector starts with a configuration. One pipeline with which it does not would keep all of them from
//! running, so that none of this kind may be published.

use std::collections::BTreeSet;

use lockstep_shared_validation::ErrorType;
use lockstep_vector_api::{Compiler, OptOut, Program, VrlDiagnostic};
use lockstep_vector_config::{
    Check, Diagnostic, Interpolation, ProgramScope, VrlEnvironment, validate_config,
    validate_start_up,
};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::assembly::{Assembly, join, render_all};
use crate::options::AssemblyOptions;
use crate::part::PipelinePart;
use crate::pipeline::{PipelineProblem, RunnablePipeline};
use crate::{globals, secrets};

/// Check that Vector starts.
pub struct StartCheck<'a> {
    /// Compiler of the programs.
    pub environment: &'a VrlEnvironment,
    /// Tells whether Vector replaces environment variables.
    pub interpolation: Interpolation,
    /// Checks whose errors do not count, because the policy only warns about them.
    pub accepted: &'a BTreeSet<Check>,
    /// Fingerprints of parts that passed. They are not checked again; those of other parts are removed.
    pub passed: &'a mut BTreeSet<String>,
}

/// Reason why there is no configuration that can be published.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StartError {
    /// The global options are invalid.
    #[error("Vector does not start with the options of the workload: {0}")]
    Options(String),
    /// A part could not be checked, for a reason that it may not have caused. A later attempt may succeed.
    #[error("{pipeline} could not be checked: {message}", pipeline = .0.pipeline, message = .0.message)]
    Unclear(PipelineProblem),
}

impl StartCheck<'_> {
    /// Assembles a configuration with which Vector starts, as
    /// [`assemble_with`](crate::assemble_with()). Pipelines with which it would not start are left out, and reported.
    ///
    /// # Errors
    ///
    /// If there is no such configuration.
    pub fn assemble(
        &mut self,
        options: &AssemblyOptions,
        pipelines: &[RunnablePipeline],
        kept: &[PipelinePart],
    ) -> Result<Assembly, StartError> {
        let none = join(options, &[], Vec::new());
        if let Some(error) = self.structure(options, &none.config).first() {
            return Err(StartError::Options(error.error.to_string()));
        }
        let (mut parts, mut problems) = render_all(options, pipelines, kept);
        self.check_each(options, &mut parts, &mut problems)?;
        let mut options = options.clone();
        loop {
            let assembly = join(&options, &parts, problems.clone());
            let together: Vec<_> = assembly.parts.iter().filter(|it| !it.is_empty()).collect();
            let culprits = self.culprits(&options, &together);
            if culprits.is_empty() {
                let errors = self.structure(&options, &assembly.config);
                let is_wrong = errors.iter().any(|it| it.check != Check::Limits);
                if !is_wrong || !options.merge_sources {
                    return Ok(assembly);
                }
                // The parts are valid, and what was made of them is not.
                options.merge_sources = false;
                continue;
            }
            parts.retain(|part| culprits.iter().all(|it| it.pipeline != part.pipeline));
            problems.extend(culprits);
        }
    }

    /// Checks each part alone, with its programs, and removes those that are invalid.
    fn check_each(
        &mut self,
        options: &AssemblyOptions,
        parts: &mut Vec<PipelinePart>,
        problems: &mut Vec<PipelineProblem>,
    ) -> Result<(), StartError> {
        let mut passed = BTreeSet::new();
        let mut valid = Vec::new();
        for part in std::mem::take(parts) {
            let fingerprint = fingerprint(options, &part);
            if part.is_empty() || self.passed.contains(&fingerprint) {
                passed.insert(fingerprint);
                valid.push(part);
                continue;
            }
            let config = together(options, &[&part]);
            let errors = self.errors(options, &config, self.environment);
            let problem = |error: &Diagnostic| problem(&part, error);
            if let Some(error) = errors.iter().find(|it| is_internal(it)) {
                return Err(StartError::Unclear(problem(error)));
            }
            match errors.first() {
                None => {
                    passed.insert(fingerprint);
                    valid.push(part);
                }
                Some(error) => problems.push(problem(error)),
            }
        }
        *self.passed = passed;
        *parts = valid;
        Ok(())
    }

    /// Returns the parts that cannot run with the others, by halving the configuration until the part is found.
    fn culprits(&self, options: &AssemblyOptions, parts: &[&PipelinePart]) -> Vec<PipelineProblem> {
        let errors = self.structure(options, &together(options, parts));
        let Some(error) = errors.first() else {
            return Vec::new();
        };
        if let [part] = parts {
            return vec![problem(part, error)];
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
        let shortest = (first.len() + 1..parts.len()).find(|length| {
            !self
                .structure(options, &together(options, &parts[..*length]))
                .is_empty()
        });
        let shortest = shortest.unwrap_or(parts.len());
        vec![problem(parts[shortest - 1], error)]
    }

    /// Returns the errors of a configuration, without those of its programs.
    fn structure(&self, options: &AssemblyOptions, config: &Value) -> Vec<Diagnostic> {
        let environment = VrlEnvironment {
            compiler: || Box::new(NoCompiler),
            limits: self.environment.limits,
            read_file: |_| Ok(String::new()),
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
        let catalogue = options.catalogue;
        let loading = validate_config(catalogue, config, &none, environment, ProgramScope::Start);
        let (opt_out, interpolation) = (OptOut::Administrator, self.interpolation);
        let starting = validate_start_up(catalogue, config, opt_out, interpolation);
        let all = loading.into_iter().chain(starting);
        let errors = all.filter(|it| !it.check.is_warning() && !self.accepted.contains(&it.check));
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

/// Returns a fingerprint of a part and of what its validation depends on.
fn fingerprint(options: &AssemblyOptions, part: &PipelinePart) -> String {
    format!("{:x} {}", options.catalogue.digest(), part.hash())
}

/// Describes an error with the names that the author of the pipeline gave its components.
fn problem(part: &PipelinePart, error: &Diagnostic) -> PipelineProblem {
    let message = format!("spec.{}", error.error);
    let message = if part.prefix.is_empty() {
        message
    } else {
        message.replace(&part.prefix, "")
    };
    PipelineProblem {
        pipeline: part.pipeline.clone(),
        message,
    }
}
