//! One scenario: a namespace and a label of its own, and access to its objects.

use std::time::Duration;

use k8s_openapi::ByteString;
use kube::api::{Api, DynamicObject};
use lockstep_envtest::{Installation, eventually_within};
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads};
use crate::running_vector::object;

/// Label by which the agents of a scenario select its pipelines.
pub(super) const LABEL: &str = "scenario";

/// Image that those tests run.
pub(super) const IMAGE: &str = "timberio/vector:0.48.0-alpine";

/// One scenario.
pub(super) struct Scenario<'a> {
    pub(super) env: &'a TestEnv,
    /// Namespace, and value of the label.
    pub(super) namespace: &'static str,
}

impl<'a> Scenario<'a> {
    pub(super) async fn start(env: &'a TestEnv, namespace: &'static str) -> Self {
        let scenario = Self { env, namespace };
        scenario.add_namespace(namespace).await;
        scenario
    }

    pub(super) async fn add_namespace(&self, namespace: &str) {
        let created = self.env.kubectl(&["create", "namespace", namespace]);
        created.expect("a namespace");
        let allowed = Installation::allow_secrets(&self.env.cluster, namespace).await;
        allowed.expect("a RoleBinding");
        allow_workloads(&self.env.cluster, namespace);
    }

    pub(super) fn object(&self, kind: &str, name: &str, spec: &Value) -> Value {
        let mut object = object(kind, name, spec);
        object["metadata"]["namespace"] = json!(self.namespace);
        object["metadata"]["labels"] = json!({LABEL: self.namespace});
        object
    }

    pub(super) fn apply(&self, kind: &str, name: &str, spec: &Value) {
        self.env.apply(&self.object(kind, name, spec));
    }

    /// Applies agents that run the pipelines of the scenario.
    pub(super) fn apply_agents(&self, name: &str, more: &Value) {
        let mut agent = json!({"image": IMAGE, "componentNames": "dashes"});
        extend(&mut agent, more);
        let selector = json!({"matchLabels": {LABEL: self.namespace}});
        self.apply(
            "Vector",
            name,
            &json!({"agent": agent, "selector": selector}),
        );
    }

    /// Applies an aggregator that runs the pipelines with a label.
    pub(super) fn apply_aggregator(&self, kind: &str, name: &str, labels: &Value, more: &Value) {
        let mut spec = json!({"image": IMAGE, "componentNames": "dashes", "replicas": 1});
        if !labels.is_null() {
            spec["selector"] = json!({"matchLabels": labels});
        }
        if kind == "ClusterVectorAggregator" {
            spec["resourceNamespace"] = json!(self.namespace);
        }
        extend(&mut spec, more);
        self.apply(kind, name, &spec);
    }

    /// Applies a Secret. The annotation of a client-side apply would be too large for some.
    pub(super) fn apply_secret(&self, name: &str, values: &Value) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace}, "stringData": values,
        });
        let path = self.env.cluster.directory().join("secret.json");
        std::fs::write(&path, secret.to_string()).expect("a file");
        let arguments = ["apply", "--server-side", "-f", &path.to_string_lossy()];
        let applied = self.env.kubectl(&arguments);
        applied.unwrap_or_else(|error| self.env.fail(&error));
    }

    /// Returns an object of the scenario's namespace, or null.
    pub(super) fn get(&self, what: &str) -> Value {
        let namespace = format!("--namespace={}", self.namespace);
        let found = self
            .env
            .kubectl(&["get", what, &namespace, "--output=json"]);
        found.map_or(Value::Null, |text| {
            serde_json::from_str(&text).expect("JSON")
        })
    }

    /// Waits until an object satisfies a condition, and returns it.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let found = eventually_within(Duration::from_mins(2), what, async || {
            Some(self.get(what)).filter(&is_so)
        });
        let found = found.await;
        found.unwrap_or_else(|error| {
            let last = self.get(what);
            self.env
                .fail(&format!("{error}: {last}\n{}", self.env.statuses()))
        })
    }

    pub(super) async fn exists(&self, what: &str) -> Value {
        self.until(what, |it| !it.is_null()).await
    }

    /// Waits until a configuration has these components, and returns it.
    pub(super) async fn runs(&self, secret: &str, file: &str, components: &[&str]) -> Value {
        let has_all = |config: &Value| {
            components.iter().all(|name| {
                let blocks = ["sources", "transforms", "sinks"];
                blocks.iter().any(|block| config[block][name].is_object())
            })
        };
        let secret = format!("secret/{secret}");
        let found = self.until(&secret, |it| has_all(&content(it, file))).await;
        content(&found, file)
    }

    /// Waits until agents run these components.
    pub(super) async fn agents_run(&self, agents: &str, components: &[&str]) -> Value {
        let secret = format!("{agents}-agent");
        self.runs(&secret, "agent.json", components).await
    }

    /// Waits until the present generation of a pipeline is valid, and returns its role.
    pub(super) async fn role(&self, kind: &str, name: &str) -> String {
        let pipeline = self.object(kind, name, &Value::Null);
        let pipelines: Api<DynamicObject> = self.env.objects(&pipeline);
        self.env
            .condition_of(&pipelines, name, "Valid", "True")
            .await;
        let pipeline = pipelines.get(name).await.expect("the pipeline");
        assert_eq!(pipeline.data["status"]["configCheckResult"], true);
        let role = pipeline.data["status"]["role"].as_str();
        role.unwrap_or_default().to_owned()
    }
}

pub(super) fn extend(fields: &mut Value, more: &Value) {
    let fields = fields.as_object_mut().expect("fields");
    fields.extend(more.as_object().cloned().unwrap_or_default());
}

/// Returns the JSON in a file of a Secret.
pub(super) fn content(secret: &Value, file: &str) -> Value {
    let content: Option<ByteString> = serde_json::from_value(secret["data"][file].clone()).ok();
    let content = content.and_then(|content| serde_json::from_slice(&content.0).ok());
    content.unwrap_or_default()
}

/// Returns a pipeline of agents.
pub(super) fn logs(source: &str, selector: &str) -> Value {
    json!({
        "sources": {source: {"type": "kubernetes_logs", "extra_label_selector": selector}},
        "sinks": {"console": {"type": "console", "inputs": [source], "encoding": {"codec": "json"}}},
    })
}

/// Returns a pipeline of aggregators.
pub(super) fn received(port: u16) -> Value {
    json!({
        "sources": {"vector_source": {"type": "vector", "address": format!("0.0.0.0:{port}")}},
        "transforms": {"process": {"type": "remap", "inputs": ["vector_source"], "source": ".processed = true"}},
        "sinks": {"console": {"type": "console", "inputs": ["process"], "encoding": {"codec": "json"}}},
    })
}

/// Returns a pipeline with the Secret `es`.
pub(super) fn with_secret(name: &str, namespace: Option<&str>) -> Value {
    json!({
        "secret": {"es": {"type": "kubernetes_secret", "name": name, "namespace": namespace}},
        "sources": {"logs": {"type": "kubernetes_logs"}},
        "sinks": {"out": {
            "type": "elasticsearch", "inputs": ["logs"], "endpoints": ["http://elasticsearch.example.com:9200"],
            "healthcheck": {"enabled": false},
            "auth": {"strategy": "basic", "user": "SECRET[es.username]", "password": "SECRET[es.password]"},
        }},
    })
}
