//! Published configuration of a workload.

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vector_stand_in::start::{Machine, start};

use crate::env::TestEnv;
use crate::vector_hostile_tenant::{INFRA, SHARED};

/// Workload: its namespace, the Secret with its configuration, and the name of the first file.
pub type Workload = (&'static str, &'static str, &'static str);

/// Workloads that both tenants share.
pub const WORKLOADS: [Workload; 2] = [
    (INFRA, "shared-agent", "agent"),
    (SHARED, "shared-aggregator", "config"),
];

/// Node with the memory limit of the Pods, and with the disk of the policy.
const MACHINE: Machine = Machine {
    memory_bytes: 1 << 30,
    disk_bytes: 40 << 30,
};

/// Types that read what belongs to the node or to Vector.
const OF_THE_NODE: [&str; 10] = [
    "docker_logs",
    "exec",
    "file",
    "file_descriptor",
    "host_metrics",
    "internal_logs",
    "internal_metrics",
    "journald",
    "lua",
    "aws_ec2_metadata",
];

/// Components that belong to no pipeline.
const VECTORS_OWN: [&str; 4] = [
    "defaultSink",
    "defaultSource",
    "internalMetricsSink",
    "internalMetricsSource",
];

/// Published configuration with the values of its secrets.
pub struct Published {
    pub config: Value,
    secrets: BTreeMap<String, String>,
}

impl Published {
    /// Reads the configuration of a workload, which may be divided among Secrets.
    pub fn read(env: &TestEnv, (namespace, secret, stem): &Workload) -> Self {
        let mut config = json!({});
        for at in 0.. {
            let (secret, file) = match at {
                0 => ((*secret).to_owned(), format!("{stem}.json")),
                at => (format!("{secret}-{at}"), format!("{stem}-{at}.json")),
            };
            let Some(content) = data(env, namespace, &secret).remove(&file) else {
                break;
            };
            let part: Value = serde_json::from_str(&content).expect("JSON");
            for (name, value) in part.as_object().into_iter().flatten() {
                for (id, component) in value.as_object().into_iter().flatten() {
                    config[name][id] = component.clone();
                }
                if !value.is_object() {
                    config[name] = value.clone();
                }
            }
        }
        Self {
            config,
            secrets: data(env, namespace, &format!("{secret}-secret-assets")),
        }
    }

    /// Starts Vector with it.
    pub fn starts(&self) -> Result<(), String> {
        let secret = |_: &str, key: &str| self.secrets.get(key).cloned();
        start(&self.config, secret, &MACHINE)
    }

    /// Returns true if the agents serve their own metrics.
    pub fn serves_metrics(&self) -> bool {
        self.config["sinks"]["internalMetricsSink"].is_object()
    }

    /// Returns an error if a component of a tenant reads what is not its own. `is_neighbours` tells those of the other tenant.
    pub fn hides_from_others(&self, is_neighbours: impl Fn(&str) -> bool) -> Result<(), String> {
        for block in ["sources", "transforms", "sinks"] {
            for (id, component) in self.config[block].as_object().into_iter().flatten() {
                if is_neighbours(id) || VECTORS_OWN.contains(&&**id) {
                    continue;
                }
                let type_ = component["type"].as_str().unwrap_or_default();
                let inputs = component["inputs"].as_array().into_iter().flatten();
                let mut inputs = inputs.filter_map(Value::as_str);
                let selector = component["extra_namespace_label_selector"].as_str();
                let is_confined = selector.is_some_and(|selector| {
                    let namespace = selector.strip_prefix("kubernetes.io/metadata.name=");
                    namespace.is_some_and(|namespace| super::NAMESPACES.contains(&namespace))
                });
                let has_own_identity = component["auth"]["access_key_id"].is_string();
                if OF_THE_NODE.contains(&type_)
                    || (type_.starts_with("aws_") && !has_own_identity)
                    || inputs.any(&is_neighbours)
                    || component.to_string().contains("SECRET[k8s.victim__")
                    || (type_ == "kubernetes_logs" && !is_confined)
                {
                    return Err(format!("{id} reads what is not its tenant's: {component}"));
                }
            }
        }
        Ok(())
    }
}

/// Returns the texts in a Secret; none if there is no such Secret.
fn data(env: &TestEnv, namespace: &str, secret: &str) -> BTreeMap<String, String> {
    let found = env.kubectl(&["get", "secret", secret, "-n", namespace, "--output=json"]);
    let found: Value = serde_json::from_str(&found.unwrap_or_default()).unwrap_or_default();
    let data = found["data"].as_object().into_iter().flatten();
    data.map(|(key, value)| {
        let value: ByteString = serde_json::from_value(value.clone()).expect("Base64");
        (key.clone(), String::from_utf8_lossy(&value.0).into_owned())
    })
    .collect()
}
