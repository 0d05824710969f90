//! Access to the workloads that run Vector, and to what they own.

use k8s_openapi::ByteString;
use lockstep_envtest::{Cluster, eventually, third_party_crds};
use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv};

/// The kinds that run Vector, and their pipelines.
pub const KINDS: &str =
    "Vector,VectorAggregator,ClusterVectorAggregator,VectorPipeline,ClusterVectorPipeline";

/// Image of the init container that moves data.
pub const IMAGE: &str = "lockstep:of-this-test";

/// Starts a cluster with the kinds that run Vector.
pub async fn start() -> TestEnv {
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node").await.expect("a node");
    install(cluster, KINDS).await
}

/// Starts a cluster with the kinds that run Vector and without nodes: Pods are created, and no kubelet runs them. The
/// controller gets additional arguments.
pub async fn start_without_nodes(controller_args: &[&str]) -> TestEnv {
    let cluster = Cluster::start().await.expect("a cluster");
    let aws = Simulator::start().await.expect("a simulator");
    let args = controller_args.iter().map(|arg| (*arg).to_owned());
    let options = EnvOptions {
        kinds: Some(KINDS),
        controller_args: args.collect(),
        ..EnvOptions::default()
    };
    TestEnv::install(cluster, aws, options).await
}

/// Starts a cluster with these kinds, in which no Pods are created.
pub async fn start_without_pods(kinds: &'static str) -> TestEnv {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    install(cluster, kinds).await
}

async fn install(cluster: Cluster, kinds: &'static str) -> TestEnv {
    let aws = Simulator::start().await.expect("a simulator");
    let options = EnvOptions {
        kinds: Some(kinds),
        // The controller does not run in a Pod.
        controller_args: vec![format!("--vector-migration-image={IMAGE}")],
        ..EnvOptions::default()
    };
    TestEnv::install(cluster, aws, options).await
}

/// Secret and key with the configuration of the agents `logs`.
pub const AGENT: (&str, &str) = ("logs-agent", "agent.json");

/// Returns the spec of a pipeline that writes the logs of Pods to the console.
pub fn logs(sink: &str) -> Value {
    json!({
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {sink: {"type": "console", "inputs": ["in"], "encoding": {"codec": "json"}}},
    })
}

/// Returns an object in the default namespace.
pub fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "observability.kaasops.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

impl TestEnv {
    /// Creates the CRD of `PodMonitor`. The controller looks for this type when it starts.
    pub fn create_pod_monitor_crd(&self) {
        for file in third_party_crds().expect("the modules are downloaded") {
            if file.to_string_lossy().contains("podmonitors") {
                let arguments = ["create", "-f", &file.to_string_lossy()];
                self.kubectl(&arguments).expect("the CRD is created");
            }
        }
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])
            .expect("established");
    }

    /// Waits until the status of a pipeline says which generations run: that of all workloads, and that of each.
    pub async fn runs(
        &self,
        pipeline: &str,
        lowest: Option<i64>,
        workloads: &[(&str, Option<i64>)],
    ) {
        let expected: Vec<_> = workloads
            .iter()
            .map(|(name, generation)| json!([name, generation]))
            .collect();
        let reported = eventually("the running generation", async || {
            let pipeline = self.get(&format!("vectorpipeline/{pipeline}"));
            let status = &pipeline["status"];
            let entries = status["workloads"].as_array().into_iter().flatten();
            let entries: Vec<_> = entries
                .map(|entry| {
                    let is_dated = entry["since"].is_string() == entry["generation"].is_i64();
                    assert!(is_dated, "{entry}");
                    json!([entry["workload"], entry["generation"]])
                })
                .collect();
            let is_so = status["runningGeneration"].as_i64() == lowest && entries == expected;
            is_so.then_some(())
        });
        reported
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}\n{}", self.statuses())));
    }

    /// Returns an object, or null.
    pub fn get(&self, what: &str) -> Value {
        let found = self.kubectl(&["get", what, "--output=json"]);
        found.map_or(Value::Null, |text| {
            serde_json::from_str(&text).expect("JSON")
        })
    }

    /// Returns the configuration in a Secret, or null.
    pub fn configuration(&self, secret: &str, file: &str) -> Value {
        let secret = self.get(&format!("secret/{secret}"));
        let content = &secret["data"][file];
        if content.is_null() {
            return Value::Null;
        }
        let content: ByteString = serde_json::from_value(content.clone()).expect("Base64");
        serde_json::from_slice(&content.0).expect("JSON")
    }

    /// Waits until a configuration satisfies a condition, and returns it.
    pub async fn configuration_that(
        &self,
        what: &str,
        (secret, file): (&str, &str),
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        let found = eventually(what, async || {
            Some(self.configuration(secret, file)).filter(&is_so)
        });
        found
            .await
            .unwrap_or_else(|error| self.fail(&format!("{error}\n{}", self.statuses())))
    }

    /// Applies an object.
    pub fn apply(&self, object: &Value) {
        self.kubectl_apply(object)
            .unwrap_or_else(|error| self.fail(&error));
    }

    /// Returns the statuses of all workloads and pipelines, to describe a failure.
    pub fn statuses(&self) -> String {
        let kinds = "vectors,vectoraggregators,clustervectoraggregators,vectorpipelines";
        let columns = "--output=custom-columns=KIND:.kind,NAME:.metadata.name,STATUS:.status";
        let found = self.kubectl(&["get", kinds, columns]);
        found.unwrap_or_else(|error| error)
    }
}
