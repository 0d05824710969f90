//! Pipelines → configuration with which Vector starts.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_api::selection::SelectablePipeline;
use lockstep_vector_api::{Interpolation, VrlEnvironment};
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, PipelineKey, PipelinePart, RunnablePipeline, StartCheck, StartError,
    assemble_with,
};

/// Pipelines of a workload: those that are assembled from their present generation, and the parts of those that run as
/// they last ran.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Selected {
    pub(crate) runnable: Vec<RunnablePipeline>,
    pub(crate) kept: Vec<PipelinePart>,
}

impl Selected {
    /// Divides the selected pipelines. Those that wait for a Secret run as they last ran, too.
    pub(crate) fn of<'a>(
        options: &AssemblyOptions,
        pipelines: impl Iterator<Item = &'a SelectablePipeline>,
        waiting: &BTreeSet<PipelineKey>,
        stored: &mut BTreeMap<PipelineKey, PipelinePart>,
    ) -> Self {
        let mut selected = Self::default();
        for pipeline in pipelines {
            let mut runnable = RunnablePipeline {
                namespace: pipeline.namespace.clone(),
                name: pipeline.name.clone(),
                uid: pipeline.uid.clone(),
                generation: pipeline.generation,
                annotations: pipeline.annotations.clone(),
                spec: pipeline.spec.clone(),
                event_port: None,
            };
            let part = stored.remove(&runnable.key());
            if !pipeline.is_valid || waiting.contains(&runnable.key()) {
                selected.kept.extend(part);
            } else if pipeline.role == Some(options.kind) {
                runnable.event_port = part.and_then(|part| part.event_port());
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
    /// Nothing is checked: Pods check all that is published.
    Nothing,
}

/// Assembles a configuration with which Vector starts, as far as the controller checks that. A pipeline whose present
/// generation cannot be part of it runs as it last ran.
pub(crate) fn assemble(
    options: &AssemblyOptions,
    selected: Selected,
    before: &BTreeMap<PipelineKey, PipelinePart>,
    environment: &VrlEnvironment,
    in_process: InProcess,
    passed: &mut BTreeSet<String>,
) -> Result<Assembly, StartError> {
    let interpolation = match in_process {
        InProcess::Start(interpolation) => interpolation,
        InProcess::Nothing => Interpolation::Off,
    };
    let accepted = BTreeSet::new();
    let mut check = StartCheck {
        environment,
        interpolation,
        accepted: &accepted,
        passed,
    };
    let Selected {
        mut runnable,
        mut kept,
    } = selected;
    let mut join = |runnable: &[RunnablePipeline], kept: &[PipelinePart]| match in_process {
        InProcess::Start(_) => check.assemble(options, runnable, kept),
        InProcess::Nothing => Ok(assemble_with(options, runnable, kept)),
    };
    let assembly = join(&runnable, &kept)?;
    let left_out = |pipeline: &RunnablePipeline| {
        let key = pipeline.key();
        assembly.problems.iter().any(|it| it.pipeline == key) && before.contains_key(&key)
    };
    let returning: Vec<_> = runnable.extract_if(.., |it| left_out(it)).collect();
    if returning.is_empty() {
        return Ok(assembly);
    }
    kept.extend(
        returning
            .iter()
            .filter_map(|it| before.get(&it.key()).cloned()),
    );
    let mut again = join(&runnable, &kept)?;
    // Why their present generation does not run is still to be reported.
    again.problems.extend(assembly.problems);
    again.problems.sort();
    again.problems.dedup();
    Ok(again)
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::{InProcessCompiler, RunnerKind};
    use lockstep_vector_assembly::render;
    use serde_json::json;

    use super::*;

    /// Returns a pipeline whose sink has this option.
    fn pipeline(option: &str) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: "p".to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"], option: 1}},
            }),
            ..RunnablePipeline::default()
        }
    }

    #[test]
    fn what_the_controller_rejects_runs_as_before_unless_only_pods_check_it() {
        let options = AssemblyOptions::new(RunnerKind::Agent);
        let part = |option| render(&options, &pipeline(option), None).expect("a part");
        let before = BTreeMap::from([(pipeline("rate").key(), part("rate"))]);
        let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
        let assembled = |in_process| {
            let selected = Selected {
                runnable: vec![pipeline("rates")],
                kept: Vec::new(),
            };
            let (environment, passed) = (&environment, &mut BTreeSet::new());
            let found = assemble(&options, selected, &before, environment, in_process, passed);
            found.expect("a configuration")
        };
        let checked = assembled(InProcess::Start(Interpolation::Off));
        assert_eq!(checked.parts, [part("rate")]);
        assert_eq!(checked.problems.len(), 1);
        let unchecked = assembled(InProcess::Nothing);
        assert_eq!(unchecked.parts, [part("rates")]);
        assert_eq!(unchecked.problems, []);
    }
}
