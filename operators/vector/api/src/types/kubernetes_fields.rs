//! Fields of the kinds that run Vector whose types are those of the Kubernetes API.

use k8s_openapi::api::apps::v1::{
    DaemonSetUpdateStrategy, DeploymentStrategy, StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetUpdateStrategy,
};
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerBehavior, MetricSpec};
use k8s_openapi::api::core::v1::{
    Affinity, EnvFromSource, EnvVar, HostAlias, LocalObjectReference, PersistentVolumeClaim,
    PodSecurityContext, Probe, ResourceRequirements, SecurityContext, Toleration,
    TopologySpreadConstraint, Volume, VolumeMount,
};
use serde_json::Value;

use crate::types::kubernetes_schema::{list, object, replace};
use crate::types::workload::SPECIFICATION;

/// Documentation of the fields of Pods and of their containers.
const POD: &str = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/";

/// Documentation of the fields of a HorizontalPodAutoscaler.
const AUTOSCALER: &str = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/";

/// Documentation of the fields of a PersistentVolumeClaim.
const CLAIM: &str = "https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/persistent-volume-claim-v1/";

/// Documentation of the fields of a StatefulSet.
const STATEFUL_SET: &str =
    "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/stateful-set-v1/";

/// Documentation of the fields of a DaemonSet.
const DAEMON_SET: &str =
    "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/";

/// Field with a type of the Kubernetes API.
pub(crate) struct KubernetesField {
    /// Path of the field below the one that contains the workload.
    path: &'static str,
    /// Returns the schema of the type.
    schema: fn() -> Value,
    /// Documentation of the type.
    page: &'static str,
}

const fn field(path: &'static str, schema: fn() -> Value, page: &'static str) -> KubernetesField {
    KubernetesField { path, schema, page }
}

/// Fields of every workload.
pub(crate) const OF_WORKLOADS: &[KubernetesField] = &[
    field("imagePullSecrets", list::<LocalObjectReference>, POD),
    field("resources", object::<ResourceRequirements>, POD),
    field("affinity", object::<Affinity>, POD),
    field("tolerations", list::<Toleration>, POD),
    field("podSecurityContext", object::<PodSecurityContext>, POD),
    field("containerSecurityContext", object::<SecurityContext>, POD),
    field("host_aliases", list::<HostAlias>, POD),
    field("env", list::<EnvVar>, POD),
    field("envFrom", list::<EnvFromSource>, POD),
    field("volumes", list::<Volume>, POD),
    field("volumeMounts", list::<VolumeMount>, POD),
    field("readinessProbe", object::<Probe>, POD),
    field("livenessProbe", object::<Probe>, POD),
    field("configCheck.resources", object::<ResourceRequirements>, POD),
    field("configCheck.affinity", object::<Affinity>, POD),
    field("configCheck.tolerations", list::<Toleration>, POD),
    field(
        "configReloaderResources",
        object::<ResourceRequirements>,
        POD,
    ),
];

/// Fields of agents only.
pub(crate) const OF_AGENTS: &[KubernetesField] = &[field(
    "updateStrategy",
    object::<DaemonSetUpdateStrategy>,
    DAEMON_SET,
)];

/// Place of the fields of rolling updates in the schema of a strategy.
const ROLLING: &str = "/properties/rollingUpdate/properties";

/// Returns the schema of the strategies of Deployments and of those of `StatefulSets`: an aggregator is one of them.
fn strategy_of_aggregators() -> Value {
    let mut schema = object::<DeploymentStrategy>();
    let of_stateful_sets = object::<StatefulSetUpdateStrategy>();
    let fields = schema.pointer_mut(ROLLING).and_then(Value::as_object_mut);
    let others = of_stateful_sets.pointer(ROLLING).and_then(Value::as_object);
    if let (Some(fields), Some(others)) = (fields, others) {
        for (name, field) in others {
            fields.entry(name).or_insert_with(|| field.clone());
        }
    }
    schema
}

/// Fields of aggregators only.
pub(crate) const OF_AGGREGATORS: &[KubernetesField] = &[
    field("updateStrategy", strategy_of_aggregators, STATEFUL_SET),
    field(
        "topologySpreadConstraints",
        list::<TopologySpreadConstraint>,
        POD,
    ),
    field("autoscaling.metrics", list::<MetricSpec>, AUTOSCALER),
    field(
        "autoscaling.behavior",
        object::<HorizontalPodAutoscalerBehavior>,
        AUTOSCALER,
    ),
    field(
        "persistence.volumeClaimTemplates",
        list::<PersistentVolumeClaim>,
        CLAIM,
    ),
    field(
        "persistence.retentionPolicy",
        object::<StatefulSetPersistentVolumeClaimRetentionPolicy>,
        STATEFUL_SET,
    ),
];

/// Returns the CRD with the schemas of the types in the fields below the one that contains the workload.
///
/// They are not generated with the rest of the CRD, because `kube` parses each part of a schema once for every part that
/// contains it, which takes longer than all else at the start of the program.
///
/// # Panics
///
/// If the CRD does not have one of the fields.
pub(crate) fn with_kubernetes_schemas(
    mut crd: Value,
    workload: &str,
    fields: &[&[KubernetesField]],
) -> Value {
    let versions = crd["spec"]["versions"].as_array_mut().expect("versions");
    for version in versions {
        for field in fields.iter().copied().flatten() {
            let pointer = pointer(&format!("{workload}.{}", field.path));
            let schema = version.pointer_mut(&pointer).and_then(Value::as_object_mut);
            replace(
                schema.unwrap_or_else(|| panic!("{pointer}")),
                (field.schema)(),
            );
        }
    }
    crd
}

/// Returns the pointer to the schema of a field in a version of a CRD.
fn pointer(path: &str) -> String {
    let path = path.replace('.', "/properties/");
    format!("/schema/openAPIV3Schema/properties/{path}")
}

/// Returns the sources of the rules of the schema of a workload: the specification of its kind, and for each field with a
/// type of Kubernetes, the documentation of that type.
pub(crate) fn references(
    workload: &str,
    fields: &[&[KubernetesField]],
) -> Vec<(String, &'static str)> {
    let of_fields = fields.iter().copied().flatten();
    let of_fields = of_fields.map(|field| (format!("{workload}.{}", field.path), field.page));
    [("spec".to_owned(), SPECIFICATION)]
        .into_iter()
        .chain(of_fields)
        .collect()
}

#[cfg(test)]
mod tests {
    use lockstep_shared_validation::ValidatedResource;
    use serde_json::Value;

    use crate::types::agent::Vector;
    use crate::types::aggregator::{ClusterVectorAggregator, VectorAggregator};

    fn crds() -> [Value; 3] {
        [
            Vector::crd(),
            VectorAggregator::crd(),
            ClusterVectorAggregator::crd(),
        ]
    }

    /// `kubectl apply` stores the CRD in an annotation; all annotations together have at most 256 KiB. Half of that
    /// leaves room for other versions of the Kubernetes API.
    #[test]
    fn the_crds_are_small_enough_for_kubectl_apply() {
        for crd in crds() {
            let size = crd.to_string().len();
            assert!(size < 128 << 10, "{}: {size}", crd["metadata"]["name"]);
        }
    }

    #[test]
    fn every_field_of_a_type_of_kubernetes_is_explained_and_none_accepts_anything() {
        for crd in crds() {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let mut fields = 0;
            visit(&schema["properties"]["spec"], "spec", &mut |path, node| {
                fields += 1;
                let is_open = node["x-kubernetes-preserve-unknown-fields"] == true;
                assert!(!is_open, "{path}");
                let description = node["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{path}");
                assert!(description.len() <= 320, "{path}");
            });
            assert!(fields > 500, "{fields}");
        }
    }

    /// Calls a function for every field of an object.
    fn visit(schema: &Value, path: &str, check: &mut impl FnMut(&str, &Value)) {
        for (name, node) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            check(&path, node);
            visit(node, &path, check);
        }
        for inner in ["items", "additionalProperties"] {
            if schema[inner].is_object() {
                visit(&schema[inner], path, check);
            }
        }
    }
}
