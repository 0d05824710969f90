//! Mark of a Namespace: the consent of an administrator to workloads in it that take pipelines or data of other namespaces.
//!
//! The configuration of a workload and the values of the Secrets of its pipelines are stored in the namespace of its Pods, and
//! its service account may read the Kubernetes API. Users who may read Secrets or create tokens there can read all of this, so
//! that the author of the workload cannot consent for the owners of the data.

use serde_json::Value;

/// Annotation of a Namespace in which workloads may take pipelines or data of other namespaces.
pub const VECTOR_WORKLOADS: &str = "lockstep.dev/vector-workloads";

/// Argument of the controller with the namespaces that it takes instead of those with the annotation.
pub const WORKLOAD_NAMESPACES_ARGUMENT: &str = "--vector-workload-namespaces";

/// Value of the annotation.
const ALLOWED: &str = "allowed";

/// Reason of the condition `Stalled` of a workload whose Namespace is not marked.
pub const NAMESPACE_NOT_MARKED: &str = "NamespaceNotMarked";

/// Returns true if an administrator has marked a Namespace.
#[must_use]
pub fn is_marked(namespace: &Value) -> bool {
    namespace["metadata"]["annotations"][VECTOR_WORKLOADS] == ALLOWED
}

/// Returns the command by which an administrator marks a Namespace.
#[must_use]
pub fn mark_command(namespace: &str) -> String {
    format!("kubectl annotate namespace {namespace} {VECTOR_WORKLOADS}={ALLOWED}")
}

/// Returns the namespace of the owned objects of a workload: its own, or the one that a cluster-scoped workload names.
#[must_use]
pub fn namespace_of_owned_objects(workload: &Value) -> Option<&str> {
    let own = workload.pointer("/metadata/namespace");
    let namespace = own.or_else(|| workload.pointer("/spec/resourceNamespace"));
    namespace.and_then(Value::as_str)
}

/// Returns true if a workload runs nothing, as far as its status tells: it is stalled, and has never published a configuration.
/// One that has runs on with the last one.
pub(crate) fn runs_nothing(workload: &Value) -> bool {
    let status = &workload["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_stalled =
        conditions.any(|condition| condition["type"] == "Stalled" && condition["status"] == "True");
    is_stalled && status["publishedConfigHash"].is_null()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_marked_by_one_value_of_the_annotation() {
        let marked =
            |annotations: Value| is_marked(&json!({"metadata": {"annotations": annotations}}));
        assert!(marked(json!({VECTOR_WORKLOADS: "allowed"})));
        for other in [
            json!(null),
            json!({VECTOR_WORKLOADS: ""}),
            json!({VECTOR_WORKLOADS: "true"}),
            json!({VECTOR_WORKLOADS: "Allowed"}),
            json!({VECTOR_WORKLOADS: "denied"}),
        ] {
            assert!(!marked(other.clone()), "{other}");
        }
        let label = json!({"metadata": {"labels": {VECTOR_WORKLOADS: "allowed"}}});
        assert!(!is_marked(&label));
    }

    #[test]
    fn a_stalled_workload_runs_what_it_has_published() {
        let status = |status: &str, reason: &str, hash: Value| {
            let condition = json!({"type": "Stalled", "status": status, "reason": reason});
            json!({"status": {"conditions": [condition], "publishedConfigHash": hash}})
        };
        for reason in [NAMESPACE_NOT_MARKED, "Invalid"] {
            assert!(runs_nothing(&status("True", reason, json!(null))));
            for runs in [
                status("True", reason, json!("hash")),
                status("False", reason, json!(null)),
            ] {
                assert!(!runs_nothing(&runs), "{runs}");
            }
        }
        assert!(!runs_nothing(&json!({})), "its first configuration follows");
    }
}
