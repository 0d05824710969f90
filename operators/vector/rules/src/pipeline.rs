//! The kinds that hold a log pipeline: VectorPipeline in a namespace, ClusterVectorPipeline in none.

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared_validation::{Settings, ValidatedResource, with_standard_fields};

use crate::crd;
use crate::{pipeline_rules, tenant_policy};

/// A log pipeline: where events come from, what becomes of them, and where they go.
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
    printcolumn = r#"{"name":"Role","type":"string","jsonPath":".status.role"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSpec {
    /// Where events come from: components of Vector by name, each with its `type` and the options of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::components")]
    pub sources: Option<Map<String, Value>>,

    /// What becomes of events on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::components")]
    pub transforms: Option<Map<String, Value>>,

    /// Where events go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::components")]
    pub sinks: Option<Map<String, Value>>,

    /// Secrets that components name as `SECRET[name.key]`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new("self.all(k, k.matches('^[A-Za-z0-9_]+$'))")
        .message("a name must have letters, digits and '_' only: it stands in `SECRET[name.key]` [secret-name]"))]
    pub secret: BTreeMap<String, SecretSource>,

    /// Whether the names of the components stay as they are, without the pipeline's before them.
    #[serde(default)]
    pub skip_prefix: bool,
}

/// A Secret that components may name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretSource {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: SecretKind,
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; only where the pipeline is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

impl SecretSource {
    /// Its namespace, where one is named.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
    }
}

/// What a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// A Secret of Kubernetes.
    KubernetesSecret,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStatus {
    /// Who runs it: `agent` or `aggregator`, by its sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub role: Option<String>,

    /// Whether it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_check_result: Option<bool>,

    /// What is wrong with it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub reason: Option<String>,

    /// Where it listens, if anything runs it; while it is not valid, what others have of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 64)))]
    pub addresses: Vec<String>,

    /// Who runs it, if it listens anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 512)))]
    pub run_by: Vec<String>,

    /// A fingerprint of what was judged, and by which rules.
    #[serde(
        default,
        rename = "LastAppliedPipelineHash",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_pipeline_hash: Option<i64>,

    /// A fingerprint of the Secrets that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_secrets_hash: Option<i64>,
}

/// A pipeline that is in no namespace: an administrator's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterVectorPipeline(pub VectorPipeline);

/// A kind that holds a pipeline.
pub trait Pipeline: ValidatedResource {
    /// What it says.
    fn spec(&self) -> &PipelineSpec;
    /// Whether it is a tenant's, and may do what tenants may.
    const IS_TENANTS: bool;
    /// Its namespace.
    fn namespace(&self) -> Option<&str>;
    /// Its name, or what that will begin with.
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

/// What makes a kind of a pipeline: all but its CRD.
macro_rules! pipeline_kind {
    ($kind:ident, $crd:expr) => {
        impl ValidatedResource for $kind {
            const GROUP: &'static str = crd::GROUP;
            const VERSION: &'static str = crd::VERSION;
            const KIND: &'static str = stringify!($kind);

            fn crd() -> Value {
                $crd
            }

            fn example() -> Value {
                example()
            }

            fn rules() -> Vec<shared_validation::Rule<Self>> {
                pipeline_rules::all()
            }

            fn settings() -> Option<Settings> {
                Some(tenant_policy::SETTINGS)
            }
        }
    };
}

pipeline_kind!(VectorPipeline, {
    let crd = <Self as CustomResourceExt>::crd();
    with_standard_fields(serde_json::to_value(crd).expect("a CRD is JSON"))
});

// That of the kind in namespaces, under names of its own.
pipeline_kind!(ClusterVectorPipeline, {
    let mut crd = <VectorPipeline as ValidatedResource>::crd();
    let plural = "clustervectorpipelines";
    crd["metadata"]["name"] = format!("{plural}.{}", crd::GROUP).into();
    crd["spec"]["names"] = json!({
        "kind": Self::KIND, "plural": plural, "singular": "clustervectorpipeline",
        "shortNames": ["cvp"],
    });
    crd["spec"]["scope"] = "Cluster".into();
    crd
});

fn example() -> Value {
    json!({"spec": {
        "sources": {"in": {"type": "kubernetes_logs"}},
        "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
    }})
}

impl PipelineSpec {
    /// The pipeline as a configuration of Vector.
    ///
    /// Numbers are as the API server stores them: `1.0` is 1.
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
        // Beyond 64 bits with a sign, the API server has numbers as doubles.
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
