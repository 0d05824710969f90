//! What a tenant's pipeline may do: it runs beside those of others, in a process that has more rights than its
//! author.

use serde_json::{Map, Value};
use shared_validation::{FieldError, FieldPath, Findings, Rule, Severity, Subject};

use crate::pipeline::Pipeline;
use crate::role::Role;

const OPERATOR: &str = "https://github.com/kaasops/vector-operator/tree/main/docs";
const LABELS: &str = "https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-metadata-name";

pub(crate) fn rules<K: Pipeline>() -> Vec<Rule<K>> {
    if !K::IS_TENANTS {
        return Vec::new();
    }
    vec![
        Rule {
            id: "tenant-sources",
            sentence: "On the nodes, a pipeline in a namespace reads the logs of Pods and nothing else.",
            severity: Severity::Error,
            source: OPERATOR,
            reads: &["spec.sources"],
            check: sources,
        },
        Rule {
            id: "tenant-namespace",
            sentence: "A pipeline in a namespace reads the logs of its own namespace only.",
            severity: Severity::Error,
            source: LABELS,
            reads: &["spec.sources"],
            check: namespace,
        },
    ]
}

fn each<'a, K: Pipeline>(
    subject: &'a Subject<'_, K>,
) -> impl Iterator<Item = (String, &'a Value)> {
    let sources = subject.object.spec().sources.iter().flat_map(Map::iter);
    sources.map(|(id, source)| (format!("spec.sources[{id}]"), source))
}

fn sources<K: Pipeline>(subject: &Subject<'_, K>, findings: &mut Findings) {
    let sources = subject.object.spec().sources.as_ref();
    if sources.and_then(Role::of) != Some(Role::Agent) {
        return;
    }
    for (path, source) in each(subject) {
        let kind = source["type"].as_str().unwrap_or_default();
        if kind != "kubernetes_logs" {
            let detail = "a VectorPipeline reads `kubernetes_logs` only; what reads the node itself is for a ClusterVectorPipeline";
            findings.invalid(&format!("{path}.type"), kind, detail);
        }
    }
}

fn namespace<K: Pipeline>(subject: &Subject<'_, K>, findings: &mut Findings) {
    let namespace = subject.object.namespace().unwrap_or_default();
    for (path, source) in each(subject) {
        if source["type"] != "kubernetes_logs" {
            continue;
        }
        let own = format!("kubernetes.io/metadata.name={namespace}");
        match source.get("extra_namespace_label_selector") {
            None => {}
            Some(Value::String(selector)) if selector.is_empty() || *selector == own => {}
            Some(other) => {
                let path = FieldPath::new(format!("{path}.extra_namespace_label_selector"));
                let detail = format!("leave it out, or set it to `{own}`: other namespaces are others'");
                findings.push(FieldError::invalid(path, other.clone(), detail));
            }
        }
    }
}
