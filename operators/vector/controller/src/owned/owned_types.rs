//! Types of the owned objects of each kind.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::discovery::Scope;
use lockstep_controller::{OwnedType, UpdateStrategy};
use lockstep_vector_api::{ConfigCheck, ConfigCheckMode, WorkloadRole, workload_namespace};
use serde_json::Value;

use crate::owned::{pod_monitor, rbac, validator};

/// Returns the types of the owned objects of a `Vector` (agents) or of either kind of aggregators. Children are written
/// in this order: a Pod needs its service account, its permissions and its configuration.
pub fn owned_types(kind: WorkloadRole, has_pod_monitors: bool) -> Vec<OwnedType> {
    let mut types = vec![
        OwnedType::namespaced::<ServiceAccount>(),
        OwnedType::cluster_scoped::<ClusterRole>(),
        OwnedType::cluster_scoped::<ClusterRoleBinding>(),
    ];
    if kind == WorkloadRole::Aggregator {
        types.extend([
            OwnedType::namespaced::<Role>(),
            OwnedType::namespaced::<RoleBinding>(),
            OwnedType::namespaced::<ConfigMap>(),
        ]);
    }
    types.extend([
        OwnedType::namespaced::<Secret>().watch_in(namespaces_of_children),
        OwnedType::namespaced::<Service>(),
        OwnedType::namespaced::<NetworkPolicy>().watch_in(namespaces_of_validators),
    ]);
    // Until a validator is ready, each check has a Pod of its own.
    let deployments =
        OwnedType::namespaced::<Deployment>().ignoring_readiness_of(validator::is_part);
    match kind {
        WorkloadRole::Agent => types.extend([
            deployments.watch_in(namespaces_of_validators),
            OwnedType::namespaced::<DaemonSet>(),
        ]),
        WorkloadRole::Aggregator => types.extend([
            deployments,
            OwnedType::namespaced::<StatefulSet>(),
            OwnedType::namespaced::<HorizontalPodAutoscaler>(),
            OwnedType::namespaced::<PodDisruptionBudget>(),
        ]),
    }
    if has_pod_monitors {
        let resource = pod_monitor::api_resource();
        types.push(OwnedType::dynamic(resource, &Scope::Namespaced));
    }
    // Nothing of a Pod that checks a configuration can be changed.
    let pods = OwnedType::namespaced::<Pod>().update_strategy(UpdateStrategy::CreateOnly);
    types.push(pods.temporary().watch_in(namespaces_of_check_pods));
    types
}

/// Returns the namespace of the owned objects of a workload whose configurations are checked in Pods, or were until now:
/// the Pods of that time are yet to be deleted.
pub(super) fn namespaces_of_check_pods(workload: &Value) -> Vec<String> {
    let check = config_check(workload);
    let has_pods = workload["status"]["checkPods"].as_i64() > Some(0);
    if has_pods || check.effective_mode() != ConfigCheckMode::InProcess {
        namespaces_of_children(workload)
    } else {
        Vec::new()
    }
}

/// Returns the namespace of the owned objects of a workload that has a validator, or had one until now.
pub(super) fn namespaces_of_validators(workload: &Value) -> Vec<String> {
    let has_validator = workload["status"]["validator"].is_string();
    if has_validator || config_check(workload).is_warm() {
        namespaces_of_children(workload)
    } else {
        Vec::new()
    }
}

fn config_check(workload: &Value) -> ConfigCheck {
    let spec = &workload["spec"];
    let agent = &spec["agent"];
    let check = if agent.is_null() { spec } else { agent }["configCheck"].clone();
    serde_json::from_value(check).unwrap_or_default()
}

/// Returns the namespace of the owned objects of a workload: its own, or the one that a cluster-scoped workload names.
fn namespaces_of_children(workload: &Value) -> Vec<String> {
    let namespace = workload_namespace::namespace_of_owned_objects(workload);
    namespace.map(String::from).into_iter().collect()
}

/// Returns the permissions that the owned objects grant. The controller needs them, too: Kubernetes denies the
/// grant of a permission to a client without this permission.
pub fn granted_rules(kind: WorkloadRole) -> Vec<Value> {
    match kind {
        WorkloadRole::Agent => vec![rbac::of_kubernetes_logs()],
        WorkloadRole::Aggregator => vec![rbac::of_kubernetes_logs(), rbac::of_event_collector()],
    }
}
