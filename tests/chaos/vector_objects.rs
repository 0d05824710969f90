//! Random workloads that run Vector, and random pipelines for them.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::env::{NAMESPACE, SECRET};

/// First port of the pipelines that listen.
const FIRST_PORT: usize = 6_000;

/// Returns a workload, with an option that makes a rollout when it changes.
pub fn workload(kind: &str, name: &str, rng: &mut Rng) -> Value {
    let mut common = json!({"expireMetricsSecs": rng.i32(60..63)});
    if kind == "Vector" {
        common = json!({"agent": common});
    }
    object(kind, name, &common)
}

/// Returns a pipeline. Those with an even number are of agents, the others of aggregators. Some refer to a Secret, and
/// some to a key that it does not have.
pub fn pipeline(name: &str, rng: &mut Rng) -> Value {
    let number = number_of(name);
    let source = if number.is_multiple_of(2) {
        json!({"type": "kubernetes_logs"})
    } else {
        json!({"type": "vector", "address": format!("0.0.0.0:{}", FIRST_PORT + number)})
    };
    let mut sink = json!({
        "type": "http", "inputs": ["mark"], "uri": "http://logs.example.com", "encoding": {"codec": "json"},
    });
    let mut spec = json!({
        "sources": {"in": source},
        "transforms": {"mark": {
            "type": "remap", "inputs": ["in"], "source": format!(".marker = \"{}\"", rng.u32(..)),
        }},
    });
    let key = [None, Some("password"), Some("absent")][rng.usize(..3)];
    if let Some(key) = key {
        let password = format!("SECRET[login.{key}]");
        sink["auth"] = json!({"strategy": "basic", "user": "app", "password": password});
        spec["secret"] = json!({"login": {"type": "kubernetes_secret", "name": SECRET}});
    }
    spec["sinks"] = json!({"out": sink});
    object("VectorPipeline", name, &spec)
}

/// Name of the kind that runs a pipeline.
pub fn runner_of(pipeline: &str) -> &'static str {
    if number_of(pipeline).is_multiple_of(2) {
        "Vector"
    } else {
        "VectorAggregator"
    }
}

/// Returns true if the pipeline refers to a key that does not exist, so that it cannot run.
pub fn waits(pipeline: &Value) -> bool {
    pipeline["spec"]["sinks"]["out"]["auth"]["password"] == "SECRET[login.absent]"
}

/// Program of a pipeline. It is different after each change.
pub fn program(pipeline: &Value) -> &str {
    let source = pipeline["spec"]["transforms"]["mark"]["source"].as_str();
    source.expect("each pipeline has a program")
}

fn number_of(pipeline: &str) -> usize {
    let number = pipeline.rsplit('-').next().map(str::parse);
    number.expect("a number").expect("a number")
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}
