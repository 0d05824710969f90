//! Check that Vector starts with a configuration. One pipeline with which it does not would keep all of them from
//! running, so that none of this kind may be published.

use std::borrow::Cow;
use std::collections::BTreeSet;

use lockstep_shared_validation::ErrorType;
use lockstep_vector_api::{Compiler, OptOut, Program, VrlDiagnostic};
use lockstep_vector_config::{
    Check, Diagnostic, Interpolation, ProgramScope, VrlEnvironment, validate_config,
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
    /// Checks whose errors do not count, because the policy only warns about them.
    pub accepted: &'a BTreeSet<Check>,
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
            let fingerprint = fingerprint(options, &resolved);
            if part.is_empty() || !is_concerned || self.passed.contains(&fingerprint) {
                passed.insert(fingerprint);
                checked.valid.push(part);
                continue;
            }
            let config = together(options, &[&*resolved]);
            let mut errors = self.errors(options, &config, self.environment);
            errors.extend(self.http_hosts(options, &part, &resolved));
            if let Some(error) = errors.iter().find(|it| is_internal(it)) {
                checked.unclear.push(self.problem(options, &part, error));
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
        let own_names = |message: String| match part.prefix.as_str() {
            "" => message,
            prefix => message.replace(prefix, ""),
        };
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
            message: own_names(message),
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
        let parts = ordered.into_iter().map(|part| TogetherPart {
            part,
            resolved: part.resolved(self.present.values),
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
            let parts: Vec<_> = parts.iter().map(|it| &*it.resolved).collect();
            self.structure(options, &together(options, &parts))
        };
        let errors = joined(parts);
        let Some(error) = errors.first() else {
            return Vec::new();
        };
        if let [it] = parts {
            return vec![self.problem(options, it.part, error)];
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
        if parts.iter().all(|it| it.part.secrets.is_empty()) {
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

/// Describes an error that the value of a Secret causes, without the value.
fn secret_problem(part: &PipelinePart, error: &Diagnostic, values: &SecretValues) -> String {
    let path = error.error.path.to_string();
    let own = part.secrets.iter();
    let own: Vec<_> = own
        .filter_map(|it| Some((it, std::str::from_utf8(values.get(&it.file_name)?).ok()?)))
        .collect();
    // A value may be the name of a field.
    let path = if own.iter().any(|(_, value)| path.contains(value)) {
        String::new()
    } else {
        format!("spec.{path} is invalid: ")
    };
    let names = own.iter().map(|(it, _)| format!("`{}`", it.name));
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
mod tests {
    use super::*;
    use crate::assembly::render_all;
    use crate::pipeline::RunnablePipeline;
    use crate::precedence::PublishedParts;
    use lockstep_vector_api::{InProcessCompiler, RunnerKind};

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
            extent: Extent::Everything,
            requires_all: true,
            present: PresentState::none(),
            passed,
        };
        let checked = check.assemble(options, render_all(options, pipelines, &[]));
        checked.map(|it| it.assembly)
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
        let check = StartCheck {
            environment: &VrlEnvironment::shared(InProcessCompiler::boxed),
            interpolation: Interpolation::Off,
            accepted: &BTreeSet::new(),
            extent: Extent::Everything,
            requires_all: true,
            present: PresentState::none(),
            passed: &mut BTreeSet::new(),
        };
        let options = AssemblyOptions::new(RunnerKind::Aggregator);
        let culprits = check.culprits_of(&options, &parts);
        assert_eq!(culprits.len(), 1, "{culprits:?}");
        assert_eq!(culprits[0].pipeline.name, "e");
        assert!(culprits[0].message.contains("already used"), "{culprits:?}");
        let others = [&parts[..4], &parts[5..]].concat();
        assert_eq!(check.culprits_of(&options, &others), []);
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

    /// Returns a pipeline whose sink has the URI of a Secret.
    fn with_secret(namespace: &str) -> RunnablePipeline {
        let sink = json!({
            "type": "http", "inputs": ["t"], "uri": "SECRET[s.u]", "encoding": {"codec": "json"},
        });
        let mut pipeline = pipeline(namespace, ".a = 1", &sink);
        pipeline.spec["secret"] = json!({"s": {"type": "kubernetes_secret", "name": "own"}});
        pipeline
    }

    fn checked_with(
        compiler: fn() -> Box<dyn Compiler>,
        extent: Extent,
        pipelines: &[RunnablePipeline],
        values: &SecretValues,
        published: &PublishedParts,
    ) -> Result<Checked, StartError> {
        let mut check = StartCheck {
            environment: &VrlEnvironment::shared(compiler),
            interpolation: Interpolation::Off,
            accepted: &BTreeSet::new(),
            extent,
            requires_all: false,
            present: PresentState { values, published },
            passed: &mut BTreeSet::new(),
        };
        check.assemble(&agent(), render_all(&agent(), pipelines, &[]))
    }

    #[test]
    fn values_of_secrets_are_part_of_what_starts() {
        let published = PublishedParts::default();
        let pipelines = [with_secret("a"), valid("b")];
        for extent in [Extent::Everything, Extent::SecretValues] {
            for (value, is_valid) in [
                ("http://example.com/", true),
                (":::not a uri", false),
                ("/secret/path", false),
                ("http://{{ x }}/", false),
            ] {
                let values = SecretValues::from([("a__p__s.u".to_owned(), value.into())]);
                let compiler = InProcessCompiler::boxed;
                let found = checked_with(compiler, extent, &pipelines, &values, &published);
                let found = found.expect("a configuration").assembly;
                if is_valid {
                    assert_eq!(names(&found), ["a/p", "b/p"], "{value}");
                    // What is published has the reference.
                    assert!(found.config.to_string().contains("SECRET[k8s.a__p__s.u]"));
                    continue;
                }
                assert_eq!(names(&found), ["b/p"], "{value}");
                let message = &found.problems[0].message;
                assert!(message.contains("spec.sinks[out].uri"), "{message}");
                assert!(message.contains("(`own`)"), "{message}");
                assert!(!message.contains(value), "{message}");
            }
        }
    }

    #[test]
    fn values_of_secrets_do_not_hide_the_errors_of_a_pipeline() {
        let published = PublishedParts::default();
        let mut wrong = with_secret("a");
        wrong.spec["sinks"]["out"]["wrong"] = 1.into();
        let values = SecretValues::from([("a__p__s.u".to_owned(), b"http://x/".to_vec())]);
        let compiler = InProcessCompiler::boxed;
        let found = |extent| {
            let pipelines = std::slice::from_ref(&wrong);
            let found = checked_with(compiler, extent, pipelines, &values, &published);
            found.expect("a configuration").assembly
        };
        let everything = found(Extent::Everything);
        let message = &everything.problems[0].message;
        assert!(message.starts_with("spec.sinks[out].wrong"), "{message}");
        // Pods check all else.
        assert_eq!(names(&found(Extent::SecretValues)), ["a/p"]);
    }

    #[test]
    fn a_part_that_cannot_be_checked_concerns_its_pipeline_only() {
        let busy: fn() -> Box<dyn Compiler> = || Box::new(BusyCompiler);
        let values = SecretValues::new();
        let running = checked(&agent(), &[valid("a")]).parts;
        let running = running.into_iter();
        let running = running.map(|part| (part.pipeline.clone(), part)).collect();
        let published = PublishedParts::new(&running, &values);
        let changed = |namespace| {
            pipeline(
                namespace,
                ".b = 1",
                &json!({"type": "blackhole", "inputs": ["t"]}),
            )
        };
        let found = |pipelines: &[RunnablePipeline]| {
            let found = checked_with(busy, Extent::Everything, pipelines, &values, &published);
            let Checked {
                assembly,
                is_incomplete,
            } = found.expect("a configuration");
            let problems = assembly.problems.iter();
            let problems: Vec<_> = problems.map(|it| it.pipeline.to_string()).collect();
            (names(&assembly), problems, is_incomplete)
        };
        let of = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        // It runs on, although the compiler is busy.
        assert_eq!(found(&[valid("a")]), (of(&["a/p"]), of(&["a/p"]), true));
        let both = [valid("a"), changed("b")];
        assert_eq!(found(&both), (of(&["a/p"]), of(&["a/p", "b/p"]), true));
        assert_eq!(found(&[changed("a")]), (of(&[]), of(&["a/p"]), true));
    }
}
