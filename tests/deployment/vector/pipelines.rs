//! Pipelines of a tenant.

use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use lockstep_envtest::eventually_within;
use serde_json::{Value, json};

use crate::site::{PODS, Site, TEAM};
use crate::stand_in::Report;

pub const API_VERSION: &str = "observability.kaasops.io/v1alpha1";

/// Access of a tenant to its pipelines.
pub struct Pipelines(Api<DynamicObject>);

impl Pipelines {
    /// Returns the access that a client has.
    pub fn of(client: Client) -> Self {
        let gvk = GroupVersionKind::gvk("observability.kaasops.io", "v1alpha1", "VectorPipeline");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "vectorpipelines");
        Self(Api::namespaced_with(client, TEAM, &resource))
    }

    /// Creates a pipeline, which must be admitted.
    pub async fn create(&self, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": API_VERSION, "kind": "VectorPipeline",
            "metadata": {"name": name}, "spec": spec,
        });
        let object = serde_json::from_value(object).expect("an object");
        let created = self.0.create(&PostParams::default(), &object).await;
        created.expect("the pipeline is admitted");
    }

    /// Changes fields of the spec of a pipeline.
    pub async fn change(&self, name: &str, spec: &Value) -> Result<(), kube::Error> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let changed = self.0.patch(name, &PatchParams::default(), &patch).await;
        changed.map(drop)
    }

    /// Waits until the status of a pipeline satisfies a condition.
    pub async fn reports(&self, site: &Site, name: &str, is_so: impl Fn(&Value) -> bool) {
        let mut last = Value::Null;
        let reported = eventually_within(PODS, "the status", async || {
            let pipeline = self.0.get(name).await.ok()?;
            last = pipeline.data["status"].clone();
            is_so(&last).then_some(())
        });
        let reported = reported.await;
        reported.unwrap_or_else(|error| site.fail(&format!("{error} of {name}: {last:#}")));
    }

    /// Deletes a pipeline.
    pub async fn delete(&self, name: &str) {
        let deleted = self.0.delete(name, &DeleteParams::default()).await;
        deleted.expect("deleted");
    }

    /// Deletes all pipelines.
    pub async fn delete_all(&self) {
        let all = self.0.list(&Default::default()).await.expect("a list");
        for pipeline in all {
            let name = pipeline.metadata.name.unwrap_or_default();
            self.delete(&name).await;
        }
    }
}

/// Returns the name of a component in Vector.
pub fn id(pipeline: &str, component: &str) -> String {
    format!("{TEAM}__{pipeline}__{component}")
}

/// Returns a pipeline of an agent with a mark in its program.
pub fn logs(mark: &str) -> Value {
    let mut spec = marked(mark);
    spec["sources"] = json!({"in": {"type": "kubernetes_logs"}});
    spec["sinks"] = json!({
        "out": {"type": "console", "inputs": ["mark"], "encoding": {"codec": "json"}},
    });
    spec
}

/// Returns the part of a pipeline with its mark.
pub fn marked(mark: &str) -> Value {
    json!({"transforms": {
        "mark": {"type": "remap", "inputs": ["in"], "source": program(mark)},
    }})
}

/// Returns true if a pipeline runs with this mark.
pub fn has_mark(report: &Report, pipeline: &str, mark: &str) -> bool {
    let transform = report.component("transforms", &id(pipeline, "mark"));
    transform["source"] == program(mark)
}

fn program(mark: &str) -> String {
    format!(".mark = \"{mark}\"")
}

/// Returns a pipeline of an agent that refers to a Secret.
pub fn keyed() -> Value {
    json!({
        "secret": {"api": {"type": "kubernetes_secret", "name": "api-keys"}},
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {"out": {
            "type": "datadog_logs", "inputs": ["in"], "default_api_key": "SECRET[api.key]",
        }},
    })
}

/// Returns a pipeline of an aggregator.
pub fn network() -> Value {
    json!({
        "sources": {"in": {"type": "syslog", "mode": "tcp", "address": "0.0.0.0:5140"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    })
}
