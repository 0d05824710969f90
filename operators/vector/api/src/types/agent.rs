//! API type `Vector`: a Vector agent that runs pipelines on every node.

use kube::CustomResource;
use lockstep_shared_validation::ValidatedResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::rules::workload;
use crate::tenancy::policy;
use crate::types::kubernetes_fields::{
    KubernetesField, OF_AGENTS, OF_WORKLOADS, references, with_kubernetes_schemas,
};
use crate::types::workload::{PipelineSelector, Workload, WorkloadStatus};
use crate::types::workload_kind::WorkloadKind;
use crate::types::workload_role::WorkloadRole;

/// Vector agent: runs Vector on every node, with the pipelines that collect data on the node.
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
    kind = "Vector",
    plural = "vectors",
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
#[serde(rename_all = "camelCase", default)]
pub struct VectorSpec {
    /// Settings of the agent Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Workload>,
    /// If true, the API server may answer requests of the agents from its cache, which reduces its load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_api_server_cache: Option<bool>,
    /// Selects the pipelines that the agents run. Default: all pipelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<PipelineSelector>,
}

/// Fields with types of the Kubernetes API.
const KUBERNETES_FIELDS: &[&[KubernetesField]] = &[OF_WORKLOADS, OF_AGENTS];

fn example() -> Value {
    json!({"spec": {"agent": {}}})
}

fn with_kubernetes_fields(crd: Value) -> Value {
    with_kubernetes_schemas(crd, Vector::WORKLOAD, KUBERNETES_FIELDS)
}

fn rule_references() -> Vec<(String, &'static str)> {
    references(Vector::WORKLOAD, KUBERNETES_FIELDS)
}

impl WorkloadKind for Vector {
    const ROLE: WorkloadRole = WorkloadRole::Agent;
    const TAKES_OTHER_NAMESPACES: bool = true;
    const WORKLOAD: &'static str = "spec.agent";
    const IMAGE: &'static [&'static str] = &["spec.agent.image"];
    const UPDATE_STRATEGY: &'static [&'static str] = &["spec.agent.updateStrategy"];
    const INTERPOLATION: &'static [&'static str] =
        &["spec.agent.envVarInterpolation", "spec.agent.env"];

    fn workload(&self) -> Option<&Workload> {
        self.spec.agent.as_ref()
    }

    fn uses_api_server_cache(&self) -> bool {
        self.spec.use_api_server_cache.unwrap_or_default()
    }
}
