//! Pipelines that share a workload, as the controller knows them.

mod endpoints;
mod order;
mod reporting;

use std::sync::Arc;

use lockstep_shared_validation::{
    LastValidated, Policy, Ruleset, ValidationRequest, Validator, ValidatorRegistry,
};
use serde_json::json;

use crate::port_allocation::*;
use crate::types::pipeline::VectorPipeline;

fn pipeline(name: &str, created: &str, address: &str) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": "VectorPipeline",
        "metadata": {
            "name": name, "namespace": "team", "uid": name, "generation": 1,
            "creationTimestamp": format!("2026-01-01T00:00:0{created}Z"),
        },
        "spec": {
            "sources": {"in": {"type": "vector", "address": address}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
        },
    })
}

fn on_nodes(name: &str, created: &str, address: &str) -> Value {
    let mut pipeline = pipeline(name, created, address);
    let source = json!({"type": "prometheus_remote_write", "address": address});
    pipeline["spec"]["sources"]["in"] = source;
    pipeline
}

/// Returns the pipeline as one of an administrator.
fn of_administrator(mut pipeline: Value) -> Value {
    pipeline["kind"] = "ClusterVectorPipeline".into();
    let metadata = pipeline["metadata"].as_object_mut();
    metadata.expect("a mapping").remove("namespace");
    pipeline
}

fn workload(name: &str, spec: &Value) -> Value {
    json!({
        "kind": "VectorAggregator",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": spec,
    })
}

fn any_workload() -> Vec<Value> {
    vec![workload("all", &json!({}))]
}

fn labelled(mut pipeline: Value, run: &str) -> Value {
    pipeline["metadata"]["labels"] = json!({"run": run});
    pipeline
}

fn with_status(mut pipeline: Value, is_valid: bool, addresses: &[&str], run_by: &[&str]) -> Value {
    let role = role(&pipeline).map(WorkloadRole::as_str);
    pipeline["status"] = json!({
        "configCheckResult": is_valid, "observedGeneration": 1, "role": role,
        "LastAppliedPipelineHash": 1, "addresses": addresses, "runBy": run_by,
    });
    pipeline
}

/// Returns what the first pipeline shares with the others.
fn shared_by(pipelines: &[Value], workloads: &[Value]) -> Value {
    let mut all = ClusterSnapshot::default();
    pipelines
        .iter()
        .chain(workloads)
        .for_each(|object| all.add(object));
    all.shared(&pipelines[0])
}

/// Returns the holder of the address of the first pipeline.
fn holder(pipelines: &[Value], workloads: &[Value]) -> Option<String> {
    let shared = shared_by(pipelines, workloads);
    let by = shared.pointer("/taken/0/by")?.as_str()?;
    Some(by.rsplit('/').next()?.to_owned())
}

const PORT: &str = "0.0.0.0:9000";
const TCP: &str = "tcp 0.0.0.0:9000";

/// Returns a pipeline after a change by its author.
fn edited(mut pipeline: Value, address: &str) -> Value {
    pipeline["metadata"]["generation"] = 2.into();
    pipeline["spec"]["sources"]["in"]["address"] = address.into();
    pipeline
}

fn paused(mut pipeline: Value) -> Value {
    pipeline["metadata"]["annotations"] = json!({"lockstep.dev/paused": "true"});
    pipeline
}
