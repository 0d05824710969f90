//! API types of aggregators: `VectorAggregator` (namespaced) and `ClusterVectorAggregator` (cluster-scoped).

use kube::CustomResource;
use lockstep_shared_validation::ValidatedResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rules::workload;
use crate::tenancy::policy;
use crate::types::aggregator_settings::Aggregator;
use crate::types::kubernetes_fields::{
    KubernetesField, OF_AGGREGATORS, OF_WORKLOADS, references, with_kubernetes_schemas,
};
use crate::types::workload::{Workload, WorkloadStatus};
use crate::types::workload_kind::WorkloadKind;
use crate::types::workload_role::WorkloadRole;

/// Vector aggregator: receives events from other services and runs the pipelines of its namespace.
#[derive(
    CustomResource,
    JsonSchema,
    ValidatedResource,
    Clone,
    Debug,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
)]
#[kube(
    group = "observability.kaasops.io",
    version = "v1alpha1",
    kind = "VectorAggregator",
    plural = "vectoraggregators",
    namespaced,
    status = "WorkloadStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Valid","type":"boolean","jsonPath":".status.configCheckResult"}"#,
    printcolumn = r#"{"name":"Loaded","type":"string","description":"Pods that have loaded the published configuration","jsonPath":".status.loaded"}"#,
    printcolumn = r#"{"name":"Pipelines","type":"integer","priority":1,"description":"Number of pipelines that run","jsonPath":".status.runningPipelines"}"#,
    printcolumn = r#"{"name":"Last Change","type":"string","priority":1,"description":"Effect of the last change on the Pods","jsonPath":".status.lastChange.action"}"#,
    printcolumn = r#"{"name":"Since","type":"date","priority":1,"description":"Time of the last change","jsonPath":".status.lastChange.time"}"#
)]
#[validated(
    example = example,
    crd = with_kubernetes_fields,
    rules = workload::rules,
    settings = policy::settings,
    rule_references = rule_references,
    optional_spec
)]
#[serde(default)]
pub struct VectorAggregatorSpec {
    /// Settings that both kinds of aggregators share.
    #[serde(flatten)]
    pub aggregator: Aggregator,
}

/// Cluster-scoped Vector aggregator: runs the cluster-scoped pipelines.
#[derive(
    CustomResource,
    JsonSchema,
    ValidatedResource,
    Clone,
    Debug,
    Default,
    PartialEq,
    Serialize,
    Deserialize,
)]
#[kube(
    group = "observability.kaasops.io",
    version = "v1alpha1",
    kind = "ClusterVectorAggregator",
    plural = "clustervectoraggregators",
    status = "WorkloadStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Valid","type":"boolean","jsonPath":".status.configCheckResult"}"#,
    printcolumn = r#"{"name":"Loaded","type":"string","description":"Pods that have loaded the published configuration","jsonPath":".status.loaded"}"#,
    printcolumn = r#"{"name":"Pipelines","type":"integer","priority":1,"description":"Number of pipelines that run","jsonPath":".status.runningPipelines"}"#,
    printcolumn = r#"{"name":"Last Change","type":"string","priority":1,"description":"Effect of the last change on the Pods","jsonPath":".status.lastChange.action"}"#,
    printcolumn = r#"{"name":"Since","type":"date","priority":1,"description":"Time of the last change","jsonPath":".status.lastChange.time"}"#
)]
#[validated(
    example = example,
    crd = with_kubernetes_fields,
    rules = workload::rules,
    settings = policy::settings,
    rule_references = rule_references,
    optional_spec
)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVectorAggregatorSpec {
    /// Namespace in which the Pods and other resources of the aggregator are created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")
    )]
    pub resource_namespace: Option<String>,
    /// Settings that both kinds of aggregators share.
    #[serde(flatten)]
    pub aggregator: Aggregator,
}

/// Field with the settings of the Pods.
const WORKLOAD: &str = "spec";

/// Fields with types of the Kubernetes API.
const KUBERNETES_FIELDS: &[&[KubernetesField]] = &[OF_WORKLOADS, OF_AGGREGATORS];

fn example() -> Value {
    json!({"spec": {"replicas": 1}})
}

fn with_kubernetes_fields(crd: Value) -> Value {
    with_kubernetes_schemas(crd, WORKLOAD, KUBERNETES_FIELDS)
}

fn rule_references() -> Vec<(String, &'static str)> {
    references(WORKLOAD, KUBERNETES_FIELDS)
}

/// Implements [`WorkloadKind`] for an aggregator.
macro_rules! workload_kind {
    ($kind:ident, $takes_other_namespaces:literal, $($resource_namespace:ident)?) => {
        impl WorkloadKind for $kind {
            const ROLE: WorkloadRole = WorkloadRole::Aggregator;
            const TAKES_OTHER_NAMESPACES: bool = $takes_other_namespaces;
            const WORKLOAD: &'static str = WORKLOAD;
            const IMAGE: &'static [&'static str] = &["spec.image"];
            const UPDATE_STRATEGY: &'static [&'static str] =
                &["spec.updateStrategy", "spec.persistence"];
            const INTERPOLATION: &'static [&'static str] =
                &["spec.envVarInterpolation", "spec.env"];

            fn workload(&self) -> Option<&Workload> {
                Some(&self.spec.aggregator.workload)
            }

            fn aggregator(&self) -> Option<&Aggregator> {
                Some(&self.spec.aggregator)
            }

            $(
                fn namespace_of_owned(&self) -> Option<&str> {
                    self.spec.$resource_namespace.as_deref()
                }
            )?
        }
    };
}

// Only one with a `ClusterRole` takes pipelines of other namespaces.
workload_kind!(VectorAggregator, false,);
workload_kind!(ClusterVectorAggregator, true, resource_namespace);
