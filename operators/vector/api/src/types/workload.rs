//! Settings that agents and aggregators share.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Page that describes the fields of these types.
pub(crate) const SPECIFICATION: &str =
    "https://github.com/kaasops/vector-operator/blob/main/docs/specification.md";

/// Object of a Kubernetes API type. The schema of each field is that of its type.
pub(crate) type OfKubernetes = Option<Map<String, Value>>;

/// List of objects of a Kubernetes API type. The schema of each field is that of its type.
pub(crate) type AllOfKubernetes = Vec<Map<String, Value>>;

/// Settings of the Pods that run Vector.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// Container image of Vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Version of Vector in the image, such as `0.58`, if the tag of the image does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]{1,3}\.[0-9]{1,4}$"))]
    pub vector_version: Option<String>,
    /// Secrets used to pull the images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub image_pull_secrets: AllOfKubernetes,
    /// Image pull policy of the containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Annotations of the Pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the Pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Resource requests and limits of the Vector container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub resources: OfKubernetes,
    /// Affinity of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub affinity: OfKubernetes,
    /// Tolerations of the Pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub tolerations: AllOfKubernetes,
    /// Labels of the nodes on which the Pods may run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Seconds that a Pod has to end, before the kubelet kills it. Vector sends what its buffers have for up to 60 seconds, or as
    /// long as its variable `VECTOR_GRACEFUL_SHUTDOWN_LIMIT_SECS` says. Default: 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Strategy by which changed Pods are replaced: that of the DaemonSet, Deployment or StatefulSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub update_strategy: OfKubernetes,
    /// Security context of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub pod_security_context: OfKubernetes,
    /// Security context of the Vector container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub container_security_context: OfKubernetes,
    /// Name of the scheduler that assigns the Pods to nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// Name of the RuntimeClass of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// Entries that are added to `/etc/hosts` of the Pods.
    #[serde(rename = "host_aliases", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub host_aliases: AllOfKubernetes,
    /// Name of the PodSecurityPolicy, in clusters that support PodSecurityPolicies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_policy_name: Option<String>,
    /// Name of the PriorityClass of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// If true, the Pods use the network namespace of their node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
    /// Environment variables of the Vector container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub env: AllOfKubernetes,
    /// ConfigMaps and Secrets whose entries become environment variables of the Vector container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub env_from: AllOfKubernetes,
    /// If true, Vector replaces environment variables in its configuration, as with its flag
    /// `--dangerously-allow-env-var-interpolation`. The policy must allow it. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_var_interpolation: Option<bool>,
    /// Format of the component ids in Vector's configuration. Default: `underscores`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component_names: Option<ComponentNames>,
    /// If true, Vector reads the logs for all `kubernetes_logs` sources that differ only in their namespace with one
    /// source. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_sources: Option<bool>,
    /// If true, an init container moves read positions and disk buffers when components get other names. Aggregators need
    /// `persistence` for it. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrate_data: Option<bool>,
    /// Directory on the node for data that must survive a restart of Vector (Vector's `data_dir`). Default: the one that the
    /// Pods have, or a directory of this workload in `/var/lib/vector-workloads`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<String>,
    /// Seconds after which an internal metric that is no longer updated expires (Vector's `expire_metrics_secs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_metrics_secs: Option<i64>,
    /// Reloads of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reload: Option<Reload>,
    /// Settings of Vector's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// If true, Vector serves its internal metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_metrics: Option<bool>,
    /// Scrape interval of the internal metrics, such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"))]
    pub scrape_interval: Option<String>,
    /// Scrape timeout of the internal metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"))]
    pub scrape_timeout: Option<String>,
    /// Volumes of the Pods.
    // An empty list differs from none: it replaces the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub volumes: Option<AllOfKubernetes>,
    /// Volume mounts of the Vector container.
    // An empty list differs from none: it replaces the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub volume_mounts: Option<AllOfKubernetes>,
    /// Readiness probe of the Vector container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub readiness_probe: OfKubernetes,
    /// Liveness probe of the Vector container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub liveness_probe: OfKubernetes,
    /// Check of the configuration before it is published, and the Pods that do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_check: Option<ConfigCheck>,
    /// If true, the configuration is stored compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_config_file: Option<bool>,
    /// Container image of the configuration reloader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_reloader_image: Option<String>,
    /// Resource requests and limits of the configuration reloader.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub config_reloader_resources: OfKubernetes,
}

/// Format of the component ids in Vector's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComponentNames {
    /// `NAMESPACE__PIPELINE__COMPONENT`: no two pipelines have the same id.
    #[default]
    Underscores,
    /// `NAMESPACE-PIPELINE-COMPONENT`, as in the operator of kaasops, to keep its buffers and read positions.
    Dashes,
}

/// Image pull policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// Kubernetes' default for the tag of the image.
    #[serde(rename = "")]
    Unset,
    /// Pull the image each time a container starts.
    Always,
    /// Pull the image if it is not present on the node.
    IfNotPresent,
    /// Never pull the image.
    Never,
}

/// Reloads of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Reload {
    /// If true, Vector prints one line for each configuration that it has loaded, and the controller reads it in the logs of the
    /// Pods: the status says how many Pods have loaded the published configuration. Default: true, and with the preset for
    /// kaasops false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe: Option<bool>,
    /// If true, the controller evicts a Pod whose reload does not end, one Pod at a time, and each once for a published
    /// configuration. It requires `observe`. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evict_stuck_pods: Option<bool>,
}

/// Settings of Vector's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Api {
    /// If true, Vector serves its API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// If true, the API serves a playground page for trying queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playground: Option<bool>,
    /// If true, the probes of the Pods use the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<bool>,
}

/// Place where configurations are checked before they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfigCheckMode {
    /// In the controller.
    #[default]
    InProcess,
    /// In a Pod that runs the image of Vector.
    Pod,
    /// In the controller, and then in a Pod.
    Both,
}

/// Check of the configuration before it is published, and the Pods that do it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.warm) || !self.warm || has(self.mode) && self.mode in ['Pod', 'Both']")
    .message("must not be true unless `mode` is `Pod` or `Both`: it makes the checks in Pods faster [config-check-warm]")
    .field_path(".warm"))]
pub struct ConfigCheck {
    /// Place where a changed pipeline is checked before it is published: `InProcess` in the controller, `Pod` by
    /// `vector validate` in a Pod, `Both` in the controller and then in a Pod. Default: `InProcess`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ConfigCheckMode>,
    /// If true, a Pod with the image keeps running and checks configurations within milliseconds. As long as it cannot, each
    /// check gets a Pod of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<bool>,
    /// If true, no check Pods are created, whatever the mode is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Container image of the check Pods. Default: the image of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Resource requests and limits of the check Pods. Default: those of the Vector container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub resources: OfKubernetes,
    /// Affinity of the check Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub affinity: OfKubernetes,
    /// Tolerations of the check Pods. Default: those of the workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub tolerations: AllOfKubernetes,
    /// Annotations of the check Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the check Pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl ConfigCheck {
    /// Returns the mode that applies.
    #[must_use]
    pub fn effective_mode(&self) -> ConfigCheckMode {
        match self.disabled {
            Some(true) => ConfigCheckMode::InProcess,
            _ => self.mode.unwrap_or_default(),
        }
    }

    /// Returns true if a Pod is to keep running for checks.
    #[must_use]
    pub fn is_warm(&self) -> bool {
        self.warm.unwrap_or_default() && self.effective_mode() != ConfigCheckMode::InProcess
    }
}

/// Selector of pipelines by their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineSelector {
    /// Labels that a pipeline must have to be selected.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// Result of the validation, and what the workload runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    /// If true, the object is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_check_result: Option<bool>,
    /// Validation errors. Not set if the object is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub reason: Option<String>,
    /// Warnings of the validation, such as options that Vector ignores, or another version of Vector than the one that
    /// pipelines are validated for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 1024)))]
    pub warnings: Vec<String>,
    /// Fingerprint of the validated spec and of the rules that validated it.
    #[serde(
        rename = "LastAppliedConfigHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_config_hash: Option<i64>,
    /// Configuration and Pods of the workload.
    #[serde(flatten)]
    pub run: RunStatus,
}

/// Configuration and Pods of a workload, as they are now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunStatus {
    /// Fingerprint of the options that all pipelines share.
    #[serde(
        rename = "LastAppliedGlobalConfigHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_global_config_hash: Option<i64>,
    /// Fingerprint of the configuration that was last published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_config_hash: Option<String>,
    /// Number of pipelines that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_pipelines: Option<i64>,
    /// Pods that have loaded the published configuration, of all that should, such as `9/12`. Not set if it is not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded: Option<String>,
    /// Pods that have not loaded the published configuration. Not set if all have, or if it is not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_loaded: Option<NotLoaded>,
    /// Valid pipelines whose last change does not run, and why not, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 1024)))]
    pub not_running: Vec<String>,
    /// Directory of the nodes with the data of the Pods. None if it is a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_directory: Option<String>,
    /// Number of Pods that check configurations now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_pods: Option<i64>,
    /// State of the Pod that keeps running for checks: `Ready`, or why each check has a Pod of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub validator: Option<String>,
    /// State of the catalogue of the workload's version of Vector while it is learned from the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub catalogue: Option<String>,
    /// Last change of the Pods or of their configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_change: Option<WorkloadChange>,
    /// Change that is known and not made yet: a Pod checks it, or it waits for the end of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_change: Option<WorkloadChange>,
    /// Time at which a configuration was last published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_config_published_at: Option<String>,
    /// Resource versions of the mounted Secrets with which the Pods were last asked to refresh them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refreshed_secret_versions: Option<String>,
}

/// Pods that have not loaded the published configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NotLoaded {
    /// Number of Pods that load it now, or that start.
    pub waiting: i64,
    /// Number of Pods that have refused it, and run the one before.
    pub refused: i64,
    /// Number of Pods whose Vector ends again and again.
    pub crash_looping: i64,
    /// Number of Pods whose reload does not end.
    pub stuck: i64,
    /// Number of Pods of which it is not known.
    pub unknown: i64,
    /// Some of them, with what their logs say, at most 5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 1024)))]
    pub pods: Vec<String>,
}

/// Change of the Pods or of their configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadChange {
    /// `Create`: the Pods are created. `Reload`: Vector reloads its configuration, and no Pod restarts. `Roll`: the Pods
    /// are replaced by the rolling update of their workload.
    pub action: String,
    /// Fields of the Pods that differ, or pipelines whose configuration differs, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 256)))]
    pub reasons: Vec<String>,
    /// Number of Pods to which the change applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<i64>,
    /// Time at which the change was made, or since when it is planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub time: Option<String>,
}
