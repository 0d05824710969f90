//! What runs pipelines: what agents and aggregators have in common.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where their fields come from.
pub(crate) const SPECIFICATION: &str =
    "https://github.com/kaasops/vector-operator/blob/main/docs/specification.md";

/// A part of Kubernetes' own API.
pub(crate) type OfKubernetes = Option<Map<String, Value>>;

/// Several of them.
pub(crate) type AllOfKubernetes = Vec<Map<String, Value>>;

/// How Vector is run.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// Vector's image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Secrets to pull images with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub image_pull_secrets: AllOfKubernetes,
    /// When images are pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Annotations of the Pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the Pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the container gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub resources: OfKubernetes,
    /// Where Pods may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub affinity: OfKubernetes,
    /// Taints that Pods bear.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub tolerations: AllOfKubernetes,
    /// The security context of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub pod_security_context: OfKubernetes,
    /// That of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub container_security_context: OfKubernetes,
    /// Who assigns Pods to nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// What runs the containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// Names of hosts that Pods know.
    #[serde(rename = "host_aliases", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub host_aliases: AllOfKubernetes,
    /// The PodSecurityPolicy, where clusters have such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_policy_name: Option<String>,
    /// The priority of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Whether Pods are in the network of their node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
    /// Variables of the environment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub env: AllOfKubernetes,
    /// Where more of them come from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub env_from: AllOfKubernetes,
    /// Where Vector keeps what must outlive it, on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<String>,
    /// After how many seconds a metric is forgotten that nobody updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_metrics_secs: Option<i64>,
    /// Vector's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// Whether Vector's own metrics are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_metrics: Option<bool>,
    /// How often they are asked for, such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"))]
    pub scrape_interval: Option<String>,
    /// How long that may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"))]
    pub scrape_timeout: Option<String>,
    /// Volumes of the Pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub volumes: AllOfKubernetes,
    /// Where the container has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub volume_mounts: AllOfKubernetes,
    /// Whether Pods are sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub readiness_probe: OfKubernetes,
    /// Whether they live.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub liveness_probe: OfKubernetes,
    /// The Pods that check configurations, where an operator has such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_check: Option<ConfigCheck>,
    /// Whether the configuration is stored compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_config_file: Option<bool>,
    /// The image of what reloads the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_reloader_image: Option<String>,
    /// What its container gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub config_reloader_resources: OfKubernetes,
}

/// When images are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// As Kubernetes has it for the image.
    #[serde(rename = "")]
    Unset,
    /// Each time.
    Always,
    /// Where the node has none.
    IfNotPresent,
    /// Not at all.
    Never,
}

/// Vector's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Api {
    /// Whether it is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether there is a page to try it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playground: Option<bool>,
    /// Whether Pods are probed by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<bool>,
}

/// The Pods that check configurations, where an operator has such.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigCheck {
    /// Whether there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Their image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// What they get.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub resources: OfKubernetes,
    /// Where they may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub affinity: OfKubernetes,
    /// Taints that they bear.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub tolerations: AllOfKubernetes,
    /// Their annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Their labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Which pipelines are run: those that have all of these labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineSelector {
    /// Labels with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    /// Whether it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_check_result: Option<bool>,
    /// What is wrong with it, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub reason: Option<String>,
    /// A fingerprint of what was judged, and by which rules.
    #[serde(
        rename = "LastAppliedConfigHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_config_hash: Option<i64>,
    /// A fingerprint of the options that all pipelines share.
    #[serde(
        rename = "LastAppliedGlobalConfigHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_global_config_hash: Option<i64>,
    /// When a configuration was last published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_config_published_at: Option<String>,
}
