//! Roles and bindings.

use serde_json::{Value, json};

use crate::names::Names;

pub(crate) fn role(names: &Names, kind: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(names, &names.program, namespace),
        "rules": rules,
    })
}

/// Returns a `ClusterRole` that extends no other.
pub(crate) fn cluster_role(names: &Names, name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(names, name, None),
        "rules": rules,
    })
}

/// Returns the binding of the role to the controllers that run in the namespace `home`.
pub(crate) fn binding(names: &Names, kind: &str, namespace: Option<&str>, home: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(names, &names.program, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind.trim_end_matches("Binding"), "name": names.program},
        "subjects": [{"kind": "ServiceAccount", "name": names.service_account, "namespace": home}],
    })
}

pub(crate) fn metadata(names: &Names, name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": {"app.kubernetes.io/name": names.program}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}
