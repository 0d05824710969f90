//! Settings that both kinds of aggregators share.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::workload::{
    AllOfKubernetes, OfKubernetes, PipelineSelector, PullPolicy, Workload,
};

/// Settings that both kinds of aggregators share.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Aggregator {
    /// Settings of the aggregator Pods.
    #[serde(flatten)]
    pub workload: Workload,
    /// Number of Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Selects the pipelines that the aggregator runs. Default: all pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<PipelineSelector>,
    /// Collector that sends Kubernetes Events to the aggregator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_collector: Option<EventCollector>,
    /// HorizontalPodAutoscaler of the aggregator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Topology spread constraints of the Pods (`spec.topologySpreadConstraints` of a Pod).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub topology_spread_constraints: AllOfKubernetes,
    /// Persistent storage of the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// PodDisruptionBudget of the aggregator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<DisruptionBudget>,
}

impl Aggregator {
    /// Returns true if each Pod has a `PersistentVolumeClaim`.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.persistence.as_ref().is_some_and(|persistence| {
            persistence.enabled.unwrap_or_default()
                || !persistence.volume_claim_templates.is_empty()
        })
    }
}

/// Collector of Kubernetes Events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCollector {
    /// Image of another event collector: that of kaasops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image pull policy of the event collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Maximum number of events that are sent in one batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_batch_size: Option<i32>,
}

/// HorizontalPodAutoscaler of the aggregator.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.enabled) && !self.enabled || !has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas")
    .message("must not be greater than `maxReplicas` [replica-range]")
    .field_path(".minReplicas"))]
pub struct Autoscaling {
    /// If true, a HorizontalPodAutoscaler scales the aggregator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Minimum number of Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Maximum number of Pods. Default: 3.
    #[serde(default = "three")]
    pub max_replicas: i32,
    /// Metrics used for scaling (`spec.metrics` of a HorizontalPodAutoscaler).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes", extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics: AllOfKubernetes,
    /// Scaling behavior (`spec.behavior` of a HorizontalPodAutoscaler).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub behavior: OfKubernetes,
}

fn three() -> i32 {
    3
}

/// Persistent storage of the Pods.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Persistence {
    /// If true, each Pod has a PersistentVolumeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Requested size of each volume, such as `10Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::quantity")]
    pub size: Option<Value>,
    /// StorageClass name of the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Access modes of the volumes, such as `ReadWriteOnce`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
    /// PersistentVolumeClaim templates, used instead of the other fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::all_of_kubernetes")]
    pub volume_claim_templates: AllOfKubernetes,
    /// PersistentVolumeClaim retention policy of the StatefulSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::of_kubernetes")]
    pub retention_policy: OfKubernetes,
}

/// PodDisruptionBudget of the aggregator.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.minAvailable) || !has(self.maxUnavailable)")
    .message("must not be set together with `minAvailable`; remove one of them [mutually-exclusive]")
    .field_path(".maxUnavailable"))]
pub struct DisruptionBudget {
    /// If true, a PodDisruptionBudget is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Minimum number, or percentage, of Pods that must stay available during an eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::number_or_share")]
    pub min_available: Option<Value>,
    /// Maximum number, or percentage, of Pods that may be unavailable after an eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::number_or_share")]
    pub max_unavailable: Option<Value>,
    /// Policy for evicting Pods that are not healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_pod_eviction_policy: Option<EvictionPolicy>,
}

/// Policy for evicting Pods that are not healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EvictionPolicy {
    /// Evict unhealthy Pods only if the budget allows it.
    IfHealthyBudget,
    /// Always evict unhealthy Pods.
    AlwaysAllow,
}
