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
                match errors.iter().find(|it| it.check != Check::Limits) {
                    None => return Ok(assembly),
                    // The parts are valid, and what was made of them is not.
                    Some(_) if options.merge_sources => options.merge_sources = false,
                    Some(error) => return Err(StartError::Options(error.error.to_string())),
                }
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
                // The next attempt begins with the part that could not be checked.
                self.passed.extend(passed);
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
        // Nothing alone is no configuration, and nothing is to blame for it.
        if parts.is_empty() {
            return Vec::new();
        }
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

#[cfg(test)]
mod tests {
    use lockstep_vector_api::{InProcessCompiler, RunnerKind};
    use serde_json::json;

    use super::*;

    fn agent() -> AssemblyOptions {
        AssemblyOptions::new(RunnerKind::Agent)
    }

    fn pipeline(namespace: &str, program: &str, sink: &Value) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some(namespace.to_owned()),
            name: "p".to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "transforms": {"t": {"type": "remap", "inputs": ["in"], "source": program}},
                "sinks": {"out": sink},
            }),
            ..RunnablePipeline::default()
        }
    }

    fn valid(namespace: &str) -> RunnablePipeline {
        let sink = json!({"type": "blackhole", "inputs": ["t"]});
        pipeline(namespace, ".a = 1", &sink)
    }

    fn check(
        compiler: fn() -> Box<dyn Compiler>,
        accepted: &[Check],
        passed: &mut BTreeSet<String>,
        options: &AssemblyOptions,
        pipelines: &[RunnablePipeline],
    ) -> Result<Assembly, StartError> {
        let mut check = StartCheck {
            environment: &VrlEnvironment::shared(compiler),
            interpolation: Interpolation::Off,
            accepted: &accepted.iter().copied().collect(),
            passed,
        };
        check.assemble(options, pipelines, &[])
    }

    fn checked(options: &AssemblyOptions, pipelines: &[RunnablePipeline]) -> Assembly {
        let passed = &mut BTreeSet::new();
        check(InProcessCompiler::boxed, &[], passed, options, pipelines).expect("a configuration")
    }

    fn names(assembly: &Assembly) -> Vec<String> {
        let names = assembly.parts.iter().map(|part| part.pipeline.to_string());
        names.collect()
    }

    #[test]
    fn pipelines_with_which_vector_does_not_start_are_left_out() {
        let file = json!({"type": "file", "inputs": ["t"], "path": "{{ a }}", "encoding": {"codec": "json"}});
        let unknown = json!({"type": "blackhole", "inputs": ["t"], "rates": 1});
        let loki = json!({
            "type": "loki", "inputs": ["t"], "endpoint": "example:3100", "labels": {"a": "b"},
            "encoding": {"codec": "json"},
        });
        let sink = json!({"type": "blackhole", "inputs": ["t"]});
        let pipelines = [
            pipeline("confinement", ".a = 1", &file),
            pipeline("options", ".a = 1", &unknown),
            pipeline("program", ".a = to_int(.b)", &sink),
            pipeline("start", ".a = 1", &loki),
            valid("valid"),
        ];
        let found = checked(&agent(), &pipelines);
        assert_eq!(names(&found), ["valid/p"]);
        let messages = found.problems.iter().map(|it| it.message.as_str());
        let messages: Vec<_> = messages.collect();
        for (message, part) in messages.iter().zip([
            "spec.sinks[out].path",
            "spec.sinks[out].rates",
            "spec.transforms[t].source",
            "spec.sinks[out].endpoint",
        ]) {
            assert!(message.starts_with(part), "{message}");
        }
        assert_eq!(messages.len(), 4);
    }

    #[test]
    fn a_workload_without_pipelines_starts() {
        let found = checked(&agent(), &[]);
        assert_eq!(
            found.config["sources"]["defaultSource"]["type"],
            "kubernetes_logs"
        );
        assert_eq!(found.problems, []);
    }

    #[test]
    fn errors_that_the_policy_only_warns_about_do_not_count() {
        let sink = json!({"type": "blackhole", "inputs": ["t"]});
        let pipelines = [pipeline("a", ".a = to_int(.b)", &sink)];
        let passed = &mut BTreeSet::new();
        let accepted = &[Check::Programs];
        let found = check(
            InProcessCompiler::boxed,
            accepted,
            passed,
            &agent(),
            &pipelines,
        );
        assert_eq!(names(&found.expect("a configuration")), ["a/p"]);
    }

    /// Compiler that is out of resources.
    struct BusyCompiler;

    impl Compiler for BusyCompiler {
        fn compile(&mut self, _: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
            Err("busy".to_owned())
        }
    }

    #[test]
    fn a_part_that_passed_is_not_compiled_again() {
        let mut passed = BTreeSet::new();
        let busy: fn() -> Box<dyn Compiler> = || Box::new(BusyCompiler);
        let unclear = check(busy, &[], &mut passed, &agent(), &[valid("a")]);
        let error = unclear.expect_err("it is busy").to_string();
        assert!(
            error.starts_with("a/p could not be checked: spec.transforms[t]"),
            "{error}"
        );
        let both = [valid("a"), valid("b")];
        let first = check(InProcessCompiler::boxed, &[], &mut passed, &agent(), &both);
        let first = first.expect("a configuration");
        assert_eq!(passed.len(), 2);
        assert_eq!(check(busy, &[], &mut passed, &agent(), &both), Ok(first));
        let one = check(busy, &[], &mut passed, &agent(), &both[..1]);
        assert_eq!(names(&one.expect("a configuration")), ["a/p"]);
        assert_eq!(passed.len(), 1);
        let unclear = check(busy, &[], &mut passed, &agent(), &[valid("a"), valid("c")]);
        assert!(matches!(unclear, Err(StartError::Unclear(_))));
        assert_eq!(passed.len(), 1);
        let changed = check(busy, &[], &mut passed, &agent(), &[valid("c")]);
        assert!(matches!(changed, Err(StartError::Unclear(_))));
    }

    #[test]
    fn more_pipelines_than_one_validation_allows_are_checked() {
        let pipelines: Vec<_> = (0..400).map(|index| valid(&format!("n{index}"))).collect();
        let found = checked(&agent(), &pipelines);
        assert_eq!(found.problems, []);
        assert_eq!(found.parts.len(), 400);
    }

    #[test]
    fn of_parts_that_are_valid_alone_and_not_together_the_last_is_to_blame() {
        let part = |name: &str, port: u16| {
            let pipeline = RunnablePipeline {
                name: name.to_owned(),
                spec: json!({
                    "sources": {"in": {"type": "vector", "address": format!("0.0.0.0:{port}")}},
                    "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
                }),
                ..RunnablePipeline::default()
            };
            crate::render(
                &AssemblyOptions::new(RunnerKind::Aggregator),
                &pipeline,
                None,
            )
            .expect("a part")
        };
        let parts = [
            part("a", 1),
            part("b", 9000),
            part("c", 2),
            part("d", 3),
            part("e", 9000),
            part("f", 4),
        ];
        let parts: Vec<_> = parts.iter().collect();
        let check = StartCheck {
            environment: &VrlEnvironment::shared(InProcessCompiler::boxed),
            interpolation: Interpolation::Off,
            accepted: &BTreeSet::new(),
            passed: &mut BTreeSet::new(),
        };
        let options = AssemblyOptions::new(RunnerKind::Aggregator);
        let culprits = check.culprits(&options, &parts);
        assert_eq!(culprits.len(), 1, "{culprits:?}");
        assert_eq!(culprits[0].pipeline.name, "e");
        assert!(culprits[0].message.contains("already used"), "{culprits:?}");
        let others = [&parts[..4], &parts[5..]].concat();
        assert_eq!(check.culprits(&options, &others), []);
    }

    #[test]
    fn merged_sources_compile_and_start() {
        let options = AssemblyOptions {
            merge_sources: true,
            ..agent()
        };
        for number in [2, 17, 40] {
            let pipelines: Vec<_> = (0..number).map(|it| valid(&format!("n{it}"))).collect();
            let found = checked(&options, &pipelines);
            assert_eq!(found.problems, []);
            let sources = found.config["sources"].as_object().expect("sources");
            assert_eq!(sources.len(), 1, "{sources:?}");
            let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
            let problems = validate_config(
                &options.catalogue,
                &found.config,
                &BTreeSet::new(),
                &environment,
                ProgramScope::Start,
            );
            assert_eq!(problems, []);
        }
    }
}
