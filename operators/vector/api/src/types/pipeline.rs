//! API types of pipelines: `VectorPipeline` (namespaced) and `ClusterVectorPipeline` (cluster-scoped).

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use lockstep_shared_validation::ValidatedResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Vector pipeline: sources that receive events, transforms that change them, and sinks that send them.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "observability.kaasops.io",
    version = "v1alpha1",
    kind = "VectorPipeline",
    shortname = "vp",
    category = "all",
    namespaced,
    status = "PipelineStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Valid","type":"boolean","jsonPath":".status.configCheckResult"}"#,
    printcolumn = r#"{"name":"Role","type":"string","jsonPath":".status.role"}"#,
    printcolumn = r#"{"name":"Running","type":"integer","description":"Generation that is published to all workloads","jsonPath":".status.runningGeneration"}"#,
    printcolumn = r#"{"name":"Loaded","type":"integer","priority":1,"description":"Generation that all Pods of the first workload have loaded","jsonPath":".status.workloads[0].loaded"}"#,
    printcolumn = r#"{"name":"Workload","type":"string","priority":1,"description":"First workload that selects the pipeline","jsonPath":".status.workloads[0].workload"}"#,
    printcolumn = r#"{"name":"Since","type":"date","priority":1,"description":"Time since which this workload runs this generation","jsonPath":".status.workloads[0].since"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"description":"Validation errors","jsonPath":".status.reason"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSpec {
    /// Vector sources by component name: each has a `type` and the options of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::components")]
    pub sources: Option<Map<String, Value>>,

    /// Vector transforms by component name: each has a `type` and the options of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::components")]
    pub transforms: Option<Map<String, Value>>,

    /// Vector sinks by component name: each has a `type` and the options of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::types::crd::components")]
    pub sinks: Option<Map<String, Value>>,

    /// Secrets by name. Components refer to a key of a Secret as `SECRET[name.key]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.all(k, k.matches('^[A-Za-z0-9_]+$'))")
        .message("names must consist of letters, digits and '_', because `SECRET[name.key]` contains them [secret-name]"))]
    pub secret: BTreeMap<String, SecretSource>,

    /// If true, component names are used unchanged, without the prefix of the pipeline.
    #[serde(default)]
    pub skip_prefix: bool,

    /// Tests of the transforms, as `tests` of a Vector configuration. `lockstep check` and `lockstep vector test` run them;
    /// the agents do not get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::types::crd::tests")]
    pub tests: Vec<Map<String, Value>>,
}

/// Secret that components can refer to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretSource {
    /// Type of the secret source.
    #[serde(rename = "type")]
    pub kind: SecretKind,
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$")
    )]
    pub name: String,
    /// Namespace of the Secret. Only for ClusterVectorPipelines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")
    )]
    pub namespace: Option<String>,
}

impl SecretSource {
    /// Returns the namespace if it is set and not empty.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
    }
}

/// Type of a secret source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// Kubernetes Secret.
    KubernetesSecret,
}

/// Result of the validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStatus {
    /// Role that runs the pipeline, `agent` or `aggregator`. It follows from the types of the sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub role: Option<String>,

    /// If true, the pipeline is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_check_result: Option<bool>,

    /// Validation errors. Not set if the pipeline is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub reason: Option<String>,

    /// Warnings of the validation, such as options that Vector ignores, or another version of Vector than the one that
    /// pipelines are validated for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 1024)))]
    pub warnings: Vec<String>,

    /// Addresses that the pipeline listens on, if a workload runs it. While the pipeline is invalid only because of
    /// address conflicts: the addresses that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 64)))]
    pub addresses: Vec<String>,

    /// Workloads that run the pipeline. Set only if the pipeline listens on an address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub run_by: Vec<String>,

    /// Generation of the pipeline that the workloads run that select it: the lowest one if they differ, and 0 if one of
    /// them runs none. While a change is invalid, this is the generation before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_generation: Option<i64>,

    /// Workloads that select the pipeline, and what each of them runs of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["workload"])
    )]
    pub workloads: Vec<PipelineWorkload>,

    /// Fingerprint of everything that the validation result depends on, including the version of the rules.
    #[serde(
        default,
        rename = "LastAppliedPipelineHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_pipeline_hash: Option<i64>,

    /// Fingerprint of the Secrets that the pipeline refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_secrets_hash: Option<i64>,
}

/// State of a pipeline in one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineWorkload {
    /// Kind, namespace and name of the workload.
    #[schemars(length(max = 512))]
    pub workload: String,
    /// Generation of the pipeline in the published configuration. Not set if the pipeline is not part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Generation of the pipeline in the configuration that all Pods have loaded. Not set if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<i64>,
    /// Time at which this generation was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Reason why the workload does not run the present generation, if it does not because of something else than the
    /// validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
}

/// Cluster-scoped pipeline, written by administrators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterVectorPipeline(pub VectorPipeline);

/// Kind whose spec is a pipeline.
pub trait Pipeline: ValidatedResource {
    /// Returns the spec.
    fn spec(&self) -> &PipelineSpec;
    /// If true, pipelines of this kind are written by tenants and restricted by the tenant policy.
    const IS_TENANTS: bool;
    /// Returns the namespace, or `None` for a cluster-scoped kind.
    fn namespace(&self) -> Option<&str>;
    /// Returns `metadata.name`, or `metadata.generateName` if the name is not set.
    fn name(&self) -> &str;
}

impl Pipeline for VectorPipeline {
    const IS_TENANTS: bool = true;

    fn spec(&self) -> &PipelineSpec {
        &self.spec
    }

    fn namespace(&self) -> Option<&str> {
        self.metadata.namespace.as_deref()
    }

    fn name(&self) -> &str {
        let metadata = &self.metadata;
        let name = metadata.name.as_ref().or(metadata.generate_name.as_ref());
        name.map_or("", String::as_str)
    }
}

impl Pipeline for ClusterVectorPipeline {
    const IS_TENANTS: bool = false;

    fn spec(&self) -> &PipelineSpec {
        &self.0.spec
    }

    fn namespace(&self) -> Option<&str> {
        None
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl PipelineSpec {
    /// Returns the pipeline as a Vector configuration.
    ///
    /// Numbers have the form in which the API server stores them: `1.0` becomes 1.
    #[must_use]
    pub fn configuration(&self) -> Value {
        let mut config = Map::new();
        for (name, block) in [
            ("sources", &self.sources),
            ("transforms", &self.transforms),
            ("sinks", &self.sinks),
        ] {
            if let Some(block) = block {
                let mut block = Value::Object(block.clone());
                whole_numbers(&mut block);
                config.insert(name.to_owned(), block);
            }
        }
        config.into()
    }
}

fn whole_numbers(value: &mut Value) {
    match value {
        // The API server stores integers beyond the range of `i64` as doubles.
        Value::Number(number) if number.as_i64().is_none() && number.is_u64() => {
            *value = number.as_f64().into();
        }
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            #[expect(clippy::cast_possible_truncation, reason = "bounded by 2^53")]
            if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0 {
                *value = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
