//! Service accounts and their permissions.

use std::collections::BTreeMap;

use lockstep_vector_api::WorkloadRole;
use serde_json::{Value, json};

use crate::owned::owned_workload::{OwnedWorkload, object};

const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Returns the permissions of the `kubernetes_logs` source.
pub(crate) fn of_kubernetes_logs() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces", "nodes", "pods"], "verbs": ["list", "watch"]})
}

/// Returns the permissions of the event collector.
pub(crate) fn of_event_collector() -> Value {
    json!({"apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"]})
}

/// Returns the service account of Vector and, if Vector reads the Kubernetes API, its permissions.
pub(crate) fn of_workload(workload: &OwnedWorkload<'_>) -> Vec<Value> {
    let account = Account {
        workload,
        name: workload.object_name(),
        labels: workload.labels(),
        gives_token: workload.role == WorkloadRole::Agent,
    };
    let mut objects = vec![account.service_account()];
    if workload.reads_kubernetes_api() {
        objects.extend(account.in_cluster(&of_kubernetes_logs()));
    }
    objects
}

/// Service account with the permissions of one component.
pub(crate) struct Account<'a> {
    pub(crate) workload: &'a OwnedWorkload<'a>,
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// If true, each Pod gets a token. Otherwise, Pods that need one say so.
    pub(crate) gives_token: bool,
}

impl Account<'_> {
    /// Returns the service account.
    pub(crate) fn service_account(&self) -> Value {
        let metadata = self.workload.metadata_with_labels(&self.name, &self.labels);
        object("v1", "ServiceAccount", metadata)
            .with_some(
                "automountServiceAccountToken",
                (!self.gives_token).then_some(false),
            )
            .into()
    }

    /// Returns objects that grant permissions in the whole cluster.
    pub(crate) fn in_cluster(&self, rule: &Value) -> [Value; 2] {
        let metadata = || self.workload.cluster_metadata(&self.name, &self.labels);
        let name = self.workload.cluster_name(&self.name);
        [
            object(API_VERSION, "ClusterRole", metadata())
                .with("rules", json!([rule]))
                .into(),
            object(API_VERSION, "ClusterRoleBinding", metadata())
                .with("roleRef", role_reference("ClusterRole", &name))
                .with("subjects", self.subjects())
                .into(),
        ]
    }

    /// Returns objects that grant permissions in the namespace of the service account.
    pub(crate) fn in_namespace(&self, rule: &Value) -> [Value; 2] {
        let metadata = || self.workload.metadata_with_labels(&self.name, &self.labels);
        [
            object(API_VERSION, "Role", metadata())
                .with("rules", json!([rule]))
                .into(),
            object(API_VERSION, "RoleBinding", metadata())
                .with("roleRef", role_reference("Role", &self.name))
                .with("subjects", self.subjects())
                .into(),
        ]
    }

    fn subjects(&self) -> Value {
        json!([{"kind": "ServiceAccount", "name": self.name, "namespace": self.workload.namespace}])
    }
}

fn role_reference(kind: &str, name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}
