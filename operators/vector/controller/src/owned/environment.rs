//! Environment variables of the Vector container.

use serde_json::{Map, Value, json};

/// Returns the environment variables: those of the user, then those of the operator, which win. A name occurs once,
/// because server-side apply rejects a list with duplicates.
pub(crate) fn desired(of_user: &[Map<String, Value>]) -> Vec<Value> {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let of_user = of_user.iter().cloned().map(Value::Object);
    let own = [
        field("VECTOR_SELF_NODE_NAME", "spec.nodeName"),
        field("VECTOR_SELF_POD_NAME", "metadata.name"),
        field("VECTOR_SELF_POD_NAMESPACE", "metadata.namespace"),
        json!({"name": "PROCFS_ROOT", "value": "/host/proc"}),
        json!({"name": "SYSFS_ROOT", "value": "/host/sys"}),
    ];
    let all: Vec<_> = of_user.chain(own).collect();
    // The kubelet uses the last of several variables with one name.
    let is_last = |at: usize| all[at + 1..].iter().all(|it| it["name"] != all[at]["name"]);
    let last = (0..all.len()).filter(|at| is_last(*at));
    last.map(|at| all[at].clone()).collect()
}
