//! The kinds that run pipelines in one place: VectorAggregator in a namespace, ClusterVectorAggregator in none.

use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared_validation::{ValidatedResource, with_standard_fields};

use crate::crd;
use crate::workload::{
    AllOfKubernetes, OfKubernetes, PipelineSelector, PullPolicy, SPECIFICATION, Workload,
    WorkloadStatus,
};

/// Aggregators: Vector where others send to, with the pipelines of its namespace.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "observability.kaasops.io",
    version = "v1alpha1",
    kind = "VectorAggregator",
    plural = "vectoraggregators",
    namespaced,
    status = "WorkloadStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Valid","type":"boolean","jsonPath":".status.configCheckResult"}"#
)]
#[serde(default)]
pub struct VectorAggregatorSpec {
    /// What all aggregators have.
    #[serde(flatten)]
    pub aggregator: Aggregator,
}

/// Aggregators that are in no namespace: with the pipelines that are in none.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "observability.kaasops.io",
    version = "v1alpha1",
    kind = "ClusterVectorAggregator",
    plural = "clustervectoraggregators",
    status = "WorkloadStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Valid","type":"boolean","jsonPath":".status.configCheckResult"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVectorAggregatorSpec {
    /// The namespace that its Pods are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub resource_namespace: Option<String>,
    /// What all aggregators have.
    #[serde(flatten)]
    pub aggregator: Aggregator,
}

/// What all aggregators have.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Aggregator {
    /// How they are run.
    #[serde(flatten)]
    pub workload: Workload,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Which pipelines they run; without it, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<PipelineSelector>,
    /// What collects the events of Kubernetes for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_collector: Option<EventCollector>,
    /// How many there are, by how much there is to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// How Pods are spread.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub topology_spread_constraints: AllOfKubernetes,
    /// What outlives Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// How many Pods may be away at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<DisruptionBudget>,
}

/// What collects the events of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCollector {
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When that is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// How many events it sends at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_batch_size: Option<i32>,
}

/// How many Pods there are, by how much there is to do.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.enabled) && !self.enabled || !has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas")
    .message("must not be more than `maxReplicas` [replicas-in-order]")
    .field_path(".minReplicas"))]
pub struct Autoscaling {
    /// Whether it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many there are at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// How many there are at most.
    #[serde(default = "three")]
    pub max_replicas: i32,
    /// By what that is decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes", extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics: AllOfKubernetes,
    /// How fast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub behavior: OfKubernetes,
}

fn three() -> i32 {
    3
}

/// What outlives Pods.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Persistence {
    /// Whether anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How much, such as `10Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::quantity")]
    pub size: Option<Value>,
    /// Of which class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// How it is reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
    /// The claims themselves, in the place of all that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::crd::all_of_kubernetes")]
    pub volume_claim_templates: AllOfKubernetes,
    /// What becomes of it when Pods are no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::of_kubernetes")]
    pub retention_policy: OfKubernetes,
}

/// How many Pods may be away at once.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.minAvailable) || !has(self.maxUnavailable)")
    .message("is one of two, of which `minAvailable` is the other; leave one out [one-budget]")
    .field_path(".maxUnavailable"))]
pub struct DisruptionBudget {
    /// Whether there is such a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many must be there: a number, or a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::number_or_share")]
    pub min_available: Option<Value>,
    /// How many may be away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::number_or_share")]
    pub max_unavailable: Option<Value>,
    /// Whether those that are not healthy may always go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_pod_eviction_policy: Option<EvictionPolicy>,
}

/// Whether Pods that are not healthy may always go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EvictionPolicy {
    /// Only where the budget allows.
    IfHealthyBudget,
    /// Always.
    AlwaysAllow,
}

/// What makes a kind of aggregators.
macro_rules! aggregator_kind {
    ($kind:ident) => {
        impl ValidatedResource for $kind {
            const GROUP: &'static str = crd::GROUP;
            const VERSION: &'static str = crd::VERSION;
            const KIND: &'static str = stringify!($kind);

            fn crd() -> Value {
                let crd = <Self as CustomResourceExt>::crd();
                with_standard_fields(serde_json::to_value(crd).expect("a CRD is JSON"))
            }

            fn example() -> Value {
                serde_json::json!({"spec": {"replicas": 1}})
            }

            fn rule_references() -> &'static [(&'static str, &'static str)] {
                &[("spec", SPECIFICATION)]
            }
        }
    };
}

aggregator_kind!(VectorAggregator);
aggregator_kind!(ClusterVectorAggregator);
