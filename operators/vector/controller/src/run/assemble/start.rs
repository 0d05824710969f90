//! Pipelines → configuration with which Vector starts.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_api::{Interpolation, VectorVersion, VrlEnvironment};
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, Extent, PipelineKey, PipelinePart, PresentState, PublishedParts,
    Rendered, RunnablePipeline, SecretValues, StartCheck, StartError, render_all,
};

use crate::run::collect::published::Published;

/// Pipelines of a workload: those that are assembled from their present generation, and the parts of those that run as
/// they last ran.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Selected {
    pub(crate) runnable: Vec<RunnablePipeline>,
    pub(crate) kept: Vec<PipelinePart>,
}

impl Selected {
    /// Divides the selected pipelines. Those that wait run as they last ran, too.
    pub(crate) fn new<'a>(
        options: &AssemblyOptions,
        pipelines: impl Iterator<Item = &'a SelectablePipeline>,
        waiting: &BTreeSet<PipelineKey>,
        published: &BTreeMap<PipelineKey, PipelinePart>,
    ) -> Self {
        let mut selected = Self::default();
        for pipeline in pipelines {
            let mut runnable = RunnablePipeline::from(pipeline);
            let part = published.get(&runnable.key());
            if !pipeline.is_valid || waiting.contains(&runnable.key()) {
                selected.kept.extend(part.cloned());
            } else if pipeline.role == Some(options.kind) {
                runnable.event_port = part.and_then(PipelinePart::event_port);
                selected.runnable.push(runnable);
            }
        }
        selected
    }
}

/// Check of the start in the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InProcess {
    /// The start is checked. The value tells whether Vector replaces environment variables.
    Start(Interpolation),
    /// Only what the values of Secrets change is checked: Pods check all else that is published.
    SecretValues(Interpolation),
}

/// Parts of the selected pipelines, and the values of their Secrets.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    selected: Selected,
    pub(crate) rendered: Rendered,
    pub(crate) values: SecretValues,
}

impl Candidate {
    /// Renders the selected pipelines. One that cannot be rendered runs as it last ran.
    pub(crate) fn render(
        options: &AssemblyOptions,
        selected: Selected,
        published: &Published,
    ) -> Self {
        let rendered = render_all(options, &selected.runnable, &selected.kept);
        let mut candidate = Self {
            selected,
            rendered,
            values: SecretValues::new(),
        };
        let problems = candidate.rendered.problems.iter();
        let failed: BTreeSet<_> = problems.map(|problem| problem.pipeline.clone()).collect();
        candidate.fall_back(options, &failed, published);
        candidate
    }

    /// Lets pipelines run as they last ran, with the values that they then had: of two Secrets, one may have been replaced
    /// already. Pipelines that are new do not run.
    pub(crate) fn fall_back(
        &mut self,
        options: &AssemblyOptions,
        pipelines: &BTreeSet<PipelineKey>,
        published: &Published,
    ) {
        if pipelines.is_empty() {
            return;
        }
        let selected = &mut self.selected;
        selected
            .runnable
            .retain(|pipeline| !pipelines.contains(&pipeline.key()));
        selected
            .kept
            .retain(|part| !pipelines.contains(&part.pipeline));
        for part in pipelines.iter().filter_map(|key| published.part(key)) {
            for file in part.secrets.iter().map(|secret| &secret.file_name) {
                let value = published.values[file].clone();
                self.values.insert(file.clone(), value);
            }
            selected.kept.push(part.clone());
        }
        let rendered = render_all(options, &selected.runnable, &selected.kept);
        self.rendered.parts = rendered.parts;
        self.rendered.problems.extend(rendered.problems);
    }
}

/// Facts that decide whether Vector starts, besides the pipelines.
pub(crate) struct Start<'a> {
    pub(crate) options: &'a AssemblyOptions,
    pub(crate) environment: &'a VrlEnvironment,
    pub(crate) in_process: InProcess,
    /// Version of Vector that runs, if the rules about its start were not compared with it.
    pub(crate) unmeasured: Option<VectorVersion>,
    pub(crate) published: &'a Published,
    /// Fingerprints of parts that passed.
    pub(crate) passed: &'a mut BTreeSet<String>,
}

impl Start<'_> {
    /// Assembles a configuration with which Vector starts, as far as the controller checks that. A pipeline whose present
    /// generation or values cannot be part of it runs as it last ran. Why they cannot is still to be reported.
    pub(crate) fn assemble(self, mut candidate: Candidate) -> Result<StartedAssembly, StartError> {
        let (interpolation, extent) = match self.in_process {
            InProcess::Start(interpolation) => (interpolation, Extent::Everything),
            InProcess::SecretValues(interpolation) => (interpolation, Extent::SecretValues),
        };
        let unmeasured = self.unmeasured.filter(|_| extent == Extent::Everything);
        let published = PublishedParts::new(&self.published.parts, &self.published.values);
        let mut problems = BTreeSet::new();
        let mut fallen_back = BTreeSet::new();
        let mut is_incomplete = false;
        loop {
            let mut check = StartCheck {
                environment: self.environment,
                interpolation,
                unmeasured,
                extent,
                requires_all: self.published.is_unknown,
                present: PresentState {
                    values: &candidate.values,
                    published: &published,
                },
                passed: &mut *self.passed,
            };
            let checked = check.assemble(self.options, candidate.rendered.clone())?;
            let mut assembly = checked.assembly;
            is_incomplete |= checked.is_incomplete;
            problems.extend(assembly.problems.iter().cloned());
            let runs = |pipeline: &PipelineKey| {
                let parts = &assembly.parts;
                parts.iter().any(|part| part.pipeline == *pipeline)
            };
            let left_out = assembly.problems.iter().map(|problem| &problem.pipeline);
            let left_out = left_out.filter(|key| {
                !runs(key) && self.published.part(key).is_some() && !fallen_back.contains(*key)
            });
            let left_out: BTreeSet<_> = left_out.cloned().collect();
            if left_out.is_empty() {
                assembly.problems = problems.into_iter().collect();
                return Ok(StartedAssembly {
                    assembly,
                    values: candidate.values,
                    is_incomplete,
                });
            }
            candidate.fall_back(self.options, &left_out, self.published);
            fallen_back.extend(left_out);
        }
    }
}

/// Configuration with which Vector starts.
#[derive(Debug)]
pub(crate) struct StartedAssembly {
    pub(crate) assembly: Assembly,
    pub(crate) values: SecretValues,
    /// If true, a part is to be checked again soon.
    pub(crate) is_incomplete: bool,
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::{InProcessCompiler, WorkloadRole};
    use lockstep_vector_assembly::render;
    use serde_json::json;

    use super::*;

    const START: InProcess = InProcess::Start(Interpolation::Off);
    const VALUES: InProcess = InProcess::SecretValues(Interpolation::Off);

    /// Returns a pipeline whose sink has this option.
    fn pipeline(option: &str) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
            spec: json!({
                "secret": {"s": {"type": "kubernetes_secret", "name": "own"}},
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {
                    "type": "websocket", "inputs": ["in"], "uri": "SECRET[s.uri]", option: 5,
                    "encoding": {"codec": "json"},
                }},
            }),
            ..RunnablePipeline::default()
        }
    }

    fn options() -> AssemblyOptions {
        AssemblyOptions::new(WorkloadRole::Agent)
    }

    fn part(option: &str) -> PipelinePart {
        render(&options(), &pipeline(option), None).expect("a part")
    }

    fn uri(value: &str) -> SecretValues {
        SecretValues::from([("n__p__s.uri".to_owned(), value.into())])
    }

    /// Returns the part that is published of a pipeline with this option, its value, and the number of problems.
    fn assembled(
        in_process: InProcess,
        option: &str,
        value: &str,
    ) -> (Vec<PipelinePart>, SecretValues, usize) {
        assembled_for(None, in_process, option, value)
    }

    fn assembled_for(
        unmeasured: Option<VectorVersion>,
        in_process: InProcess,
        option: &str,
        value: &str,
    ) -> (Vec<PipelinePart>, SecretValues, usize) {
        let published = Published {
            parts: BTreeMap::from([(pipeline("").key(), part("ping_interval"))]),
            values: uri("ws://old"),
            is_unknown: false,
        };
        let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
        let selected = Selected {
            runnable: vec![pipeline(option)],
            kept: Vec::new(),
        };
        let mut candidate = Candidate::render(&options(), selected, &published);
        candidate.values = uri(value);
        let start = Start {
            options: &options(),
            environment: &environment,
            in_process,
            unmeasured,
            published: &published,
            passed: &mut BTreeSet::new(),
        };
        let StartedAssembly {
            assembly, values, ..
        } = start.assemble(candidate).expect("a configuration");
        (assembly.parts, values, assembly.problems.len())
    }

    #[test]
    fn what_the_controller_rejects_runs_as_before_unless_only_pods_check_it() {
        let before = (vec![part("ping_interval")], uri("ws://old"), 1);
        let changed = (vec![part("ping_timeout")], uri("ws://new"), 0);
        assert_eq!(assembled(START, "ping_timeout", "ws://new"), changed);
        assert_eq!(assembled(START, "tls", "ws://new"), before);
        let unchecked = (vec![part("tls")], uri("ws://new"), 0);
        assert_eq!(assembled(VALUES, "tls", "ws://new"), unchecked);
    }

    #[test]
    fn a_pipeline_with_an_invalid_value_keeps_the_last_valid_one() {
        let before = (vec![part("ping_interval")], uri("ws://old"), 1);
        for in_process in [START, VALUES] {
            for option in ["ping_interval", "ping_timeout"] {
                for unmeasured in [None, VectorVersion::parse("0.39")] {
                    let found = assembled_for(unmeasured, in_process, option, ":::not a uri");
                    assert_eq!(found, before, "{in_process:?} {option} {unmeasured:?}");
                }
            }
        }
    }

    #[test]
    fn a_published_value_that_is_invalid_is_not_published_again() {
        let published = Published {
            parts: BTreeMap::from([(pipeline("").key(), part("ping_interval"))]),
            values: uri(":::not a uri"),
            is_unknown: false,
        };
        let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
        let selected = Selected {
            runnable: vec![pipeline("ping_interval")],
            kept: Vec::new(),
        };
        let mut candidate = Candidate::render(&options(), selected, &published);
        candidate.values = uri(":::not a uri");
        let start = Start {
            options: &options(),
            environment: &environment,
            in_process: START,
            unmeasured: None,
            published: &published,
            passed: &mut BTreeSet::new(),
        };
        let found = start.assemble(candidate).expect("a configuration").assembly;
        assert_eq!(found.parts, []);
        assert_eq!(found.problems.len(), 1);
    }
}
