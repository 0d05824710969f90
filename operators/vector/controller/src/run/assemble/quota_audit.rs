//! Comparison of the stored pipelines with the quotas of a policy, before it binds.

use std::collections::BTreeSet;

use lockstep_vector_api::WorkloadRole;
use lockstep_vector_api::selection::{self, SelectablePipeline};
use lockstep_vector_assembly::{AssemblyOptions, PipelinePart, RunnablePipeline, render};
use serde_json::Value;

use crate::run::assemble::quotas::Quotas;

/// Pipelines and workloads of a cluster.
#[derive(Default)]
pub struct QuotaAudit {
    workloads: Vec<(WorkloadRole, Value)>,
    pipelines: Vec<Candidate>,
}

/// Pipeline with what it takes of a workload.
struct Candidate {
    keys: BTreeSet<String>,
    pipeline: SelectablePipeline,
    part: PipelinePart,
}

impl QuotaAudit {
    /// Adds a workload or a pipeline; objects of other kinds are ignored.
    pub fn add(&mut self, object: &Value) {
        let kind = match object["kind"].as_str().unwrap_or_default() {
            "Vector" => WorkloadRole::Agent,
            "VectorAggregator" | "ClusterVectorAggregator" => WorkloadRole::Aggregator,
            _ => return self.add_pipeline(object),
        };
        self.workloads.push((kind, object.clone()));
    }

    fn add_pipeline(&mut self, object: &Value) {
        let (keys, pipeline) = selection::index_selectable(object);
        let Some(role) = pipeline.role else {
            return;
        };
        let runnable = RunnablePipeline {
            namespace: pipeline.namespace.clone(),
            name: pipeline.name.clone(),
            spec: pipeline.spec.clone(),
            annotations: pipeline.annotations.clone(),
            ..RunnablePipeline::default()
        };
        // One that cannot be rendered takes nothing.
        if let Ok(part) = render(&AssemblyOptions::new(role), &runnable, None) {
            self.pipelines.push(Candidate {
                keys: keys.into_iter().collect(),
                pipeline,
                part,
            });
        }
    }

    /// Returns a sentence for each namespace whose pipelines take more of a workload than the policy allows, and for each workload
    /// whose pipelines do together. `settings` is the section of the policy. The values of Secrets do not count: they are not read.
    #[must_use]
    pub fn exceeded(&self, settings: Option<&Value>) -> Vec<String> {
        let quotas = Quotas::read(settings);
        let mut sentences = Vec::new();
        for (kind, workload) in &self.workloads {
            let keys = selection::keys(workload, *kind);
            let of_workload = self.pipelines.iter().filter(|candidate| {
                candidate.pipeline.role == Some(*kind)
                    && keys.iter().any(|key| candidate.keys.contains(key))
                    && selection::selects(workload, &candidate.pipeline)
            });
            let parts: Vec<_> = of_workload
                .map(|candidate| candidate.part.clone())
                .collect();
            let name = selection::workload_name(workload);
            let exceeded = quotas.exceeded(&parts).into_iter();
            sentences.extend(exceeded.map(|what| format!("{name}: {what}")));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, namespace: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": "observability.kaasops.io/v1alpha1",
            "kind": kind,
            "metadata": {"namespace": namespace, "name": name},
            "spec": spec,
        })
    }

    #[test]
    fn namespaces_and_workloads_with_more_than_the_policy_allows_are_listed() {
        let mut audit = QuotaAudit::default();
        audit.add(&object("Vector", "infra", "logs", &json!({"agent": {}})));
        let selector = json!({"matchLabels": {"of": "others"}});
        audit.add(&object(
            "Vector",
            "infra",
            "others",
            &json!({"agent": {}, "selector": selector}),
        ));
        for (namespace, name) in [("a", "p"), ("a", "q"), ("b", "p")] {
            let buffer = json!({"type": "disk", "max_size": 1_u64 << 30});
            let spec = json!({
                "sources": {"in": {"type": "kubernetes_logs"}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"], "buffer": buffer}},
            });
            audit.add(&object("VectorPipeline", namespace, name, &spec));
        }
        audit.add(&object(
            "VectorPipeline",
            "a",
            "invalid",
            &json!({"sources": 1}),
        ));
        assert_eq!(audit.exceeded(None), [""; 0]);
        let settings = json!({
            "quota": {"pipelines": 1},
            "namespaces": {"b": {"quota": {"diskBytes": 5}}},
            "workloads": {"diskBytes": 2_u64 << 30},
        });
        let expected = [
            "Vector infra/logs: all pipelines of a workload take 3221225472 bytes of disk, and 2147483648 are allowed",
            "Vector infra/logs: the pipelines of the namespace `a` take 2 pipelines, and 1 are allowed",
            "Vector infra/logs: the pipelines of the namespace `b` take 1073741824 bytes of disk, and 5 are allowed",
        ];
        assert_eq!(audit.exceeded(Some(&settings)), expected);
        let kaasops = json!({"preset": "kaasops"});
        assert_eq!(audit.exceeded(Some(&kaasops)), [""; 0]);
    }
}
