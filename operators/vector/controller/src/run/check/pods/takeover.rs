//! Pipelines that another operator runs when a workload is taken over.

use std::collections::BTreeSet;

use lockstep_vector_assembly::{Assembly, AssemblyOptions, PipelineKey};

use crate::run::migrate::OF_KAASOPS;

/// Returns the pipelines of which the live configuration has a component, under its name here or under that of the operator
/// of kaasops. Such a pipeline runs on, also if it was changed since: no part of it is stored that could run instead, so
/// that without it the workload would lose its logs.
pub(crate) fn running(
    live_ids: &BTreeSet<String>,
    assembly: &Assembly,
    options: &AssemblyOptions,
) -> BTreeSet<PipelineKey> {
    if live_ids.is_empty() {
        return BTreeSet::new();
    }
    let of_kaasops = assembly.in_layout(&options.in_layout(OF_KAASOPS));
    let parts = assembly.parts.iter().chain(&of_kaasops.parts);
    let running = parts.filter(|part| part.component_ids().any(|id| live_ids.contains(id)));
    running.map(|part| part.pipeline.clone()).collect()
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use lockstep_vector_assembly::{RunnablePipeline, assemble};
    use serde_json::json;

    use super::*;

    #[test]
    fn pipelines_are_recognized_by_the_names_of_both_operators() {
        let pipelines = ["old", "changed", "new", "ours"].map(|name| RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            spec: json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        });
        let options = AssemblyOptions::new(WorkloadRole::Agent);
        let assembly = assemble(&options, &pipelines);
        let live = [
            "n-old-in",
            "n-old-out",
            "n-changed-in",
            "n-changed-gone",
            "n__ours__in",
        ];
        let live = live.map(str::to_owned).into();
        let found = running(&live, &assembly, &options);
        let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["changed", "old", "ours"]);
        assert_eq!(
            running(&BTreeSet::new(), &assembly, &options),
            BTreeSet::new()
        );
    }
}
