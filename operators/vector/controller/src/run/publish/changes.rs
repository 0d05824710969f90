//! Differences between the published configuration and the one that is about to be published.

use std::collections::{BTreeMap, BTreeSet};

use lockstep_vector_assembly::{Assembly, PipelineKey, PipelinePart};

/// Content that is published now.
pub(crate) struct Published<'a> {
    pub(crate) parts: &'a BTreeMap<PipelineKey, PipelinePart>,
    /// Values of the Secrets of pipelines.
    pub(crate) secrets: &'a BTreeMap<String, Vec<u8>>,
    /// Fingerprint of the configuration, if it is known.
    pub(crate) config_hash: Option<&'a str>,
}

impl Published<'_> {
    /// Describes the differences, each by the name of a pipeline if it is due to one.
    pub(crate) fn changes(
        &self,
        assembly: &Assembly,
        secrets: &BTreeMap<String, Vec<u8>>,
    ) -> Vec<String> {
        let now: BTreeMap<_, _> = assembly.parts.iter().map(|it| (&it.pipeline, it)).collect();
        let keys: BTreeSet<_> = self.parts.keys().chain(now.keys().copied()).collect();
        let has_new_secret = |part: &PipelinePart| {
            let mut files = part.secrets.iter().map(|it| &it.file_name);
            files.any(|file| self.secrets.get(file) != secrets.get(file))
        };
        let changes = keys.into_iter().filter_map(|key| {
            let what = match (self.parts.get(key), now.get(key)) {
                (None, _) => "added",
                (_, None) => "removed",
                (Some(before), Some(now)) if before.configuration() != now.configuration() => {
                    "changed"
                }
                (_, Some(now)) if has_new_secret(now) => "has other Secrets",
                _ => return None,
            };
            Some(format!("pipeline {key} {what}"))
        });
        let mut changes: Vec<_> = changes.collect();
        if changes.is_empty() && self.config_hash != Some(&*assembly.hash()) {
            changes.push("settings of the workload".to_owned());
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use lockstep_vector_api::WorkloadRole;
    use lockstep_vector_assembly::{AssemblyOptions, RunnablePipeline, assemble};
    use serde_json::json;

    use super::*;

    fn pipeline(name: &str, generation: i64, sink: &str) -> RunnablePipeline {
        RunnablePipeline {
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            generation,
            spec: json!({
                "secret": {"s": {"type": "kubernetes_secret", "name": "s"}},
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {
                    "type": sink, "inputs": ["in"], "default_api_key": "SECRET[s.key]",
                }},
            }),
            ..RunnablePipeline::default()
        }
    }

    fn values(assembly: &Assembly, value: &str) -> BTreeMap<String, Vec<u8>> {
        let files = assembly.secrets.iter().map(|it| it.file_name.clone());
        files.map(|file| (file, value.into())).collect()
    }

    #[test]
    fn changes_are_named_by_their_pipelines() {
        let options = AssemblyOptions::new(WorkloadRole::Agent);
        let before = assemble(
            &options,
            &[
                pipeline("a", 1, "x"),
                pipeline("b", 1, "x"),
                pipeline("c", 1, "x"),
            ],
        );
        let parts = before.parts.iter();
        let parts = parts.map(|part| (part.pipeline.clone(), part.clone()));
        let (parts, hash) = (parts.collect(), before.hash());
        let secrets = values(&before, "v");
        let published = Published {
            parts: &parts,
            secrets: &secrets,
            config_hash: Some(&hash),
        };
        let after = [
            pipeline("b", 2, "x"),
            pipeline("c", 2, "y"),
            pipeline("d", 1, "x"),
        ];
        let after = assemble(&options, &after);
        assert_eq!(
            published.changes(&after, &values(&after, "v")),
            [
                "pipeline n/a removed",
                "pipeline n/c changed",
                "pipeline n/d added"
            ]
        );
        assert_eq!(published.changes(&before, &secrets), Vec::<String>::new());
        assert_eq!(
            published.changes(&before, &values(&before, "w")).len(),
            before.parts.len()
        );
        let mut exporting = options.clone();
        exporting.internal_metrics = Some(lockstep_vector_assembly::InternalMetrics::ReplacedByAll);
        let pipelines = ["a", "b", "c"].map(|name| pipeline(name, 1, "x"));
        let exporting = assemble(&exporting, &pipelines);
        assert_eq!(
            published.changes(&exporting, &secrets),
            ["settings of the workload"]
        );
    }
}
