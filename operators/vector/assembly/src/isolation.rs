//! Sources of tenants: on a node, a tenant reads the logs of its own namespace and nothing else.
//!
//! The rules of pipelines deny everything else. Here the same holds whatever was validated: a policy cannot turn it off.

use lockstep_vector_api::WorkloadRole;
use serde_json::{Map, Value};

/// Source that reads the logs of Pods.
pub(crate) const KUBERNETES_LOGS: &str = "kubernetes_logs";

/// Option that selects namespaces by their labels.
pub(crate) const NAMESPACE_SELECTOR: &str = "extra_namespace_label_selector";

/// Label that every namespace has.
pub(crate) const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name=";

/// Restricts a source of a tenant to its namespace.
pub(crate) fn restrict(
    id: &str,
    source: &mut Map<String, Value>,
    namespace: &str,
    kind: WorkloadRole,
) -> Result<(), String> {
    let is_type = |name: &str| source.get("type").is_some_and(|kind| kind == name);
    let reads_node =
        |name: &str| kind == WorkloadRole::Agent || WorkloadRole::is_only_for_agents(name);
    if !is_type(KUBERNETES_LOGS) {
        let name = source
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        return if reads_node(name) {
            Err(format!(
                "the source `{id}` has the type `{name}`; on nodes, a VectorPipeline may read only `{KUBERNETES_LOGS}`"
            ))
        } else {
            Ok(())
        };
    }
    let own = format!("{NAMESPACE_LABEL}{namespace}");
    let written = source.get(NAMESPACE_SELECTOR);
    if written.is_some_and(|written| *written != "" && *written != *own) {
        return Err(format!(
            "`{NAMESPACE_SELECTOR}` of `{id}` must not be set to anything but `{own}`: a tenant may read only its own namespace"
        ));
    }
    // Without these fields, Vector does not look at namespaces.
    if source
        .get("insert_namespace_fields")
        .is_some_and(|it| *it != true)
    {
        return Err(format!(
            "`insert_namespace_fields` of `{id}` must be true: otherwise Vector reads the logs of all namespaces"
        ));
    }
    source.insert(NAMESPACE_SELECTOR.to_owned(), own.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn restricted(source: &Value, kind: WorkloadRole) -> Result<Value, String> {
        let mut source = source.as_object().expect("a source").clone();
        restrict("in", &mut source, "a", kind)?;
        Ok(source.into())
    }

    #[test]
    fn logs_of_pods_are_those_of_the_own_namespace() {
        let own = "kubernetes.io/metadata.name=a";
        let expected = json!({"type": "kubernetes_logs", NAMESPACE_SELECTOR: own});
        for selector in [None, Some(""), Some(own)] {
            let mut source = json!({"type": "kubernetes_logs"});
            if let Some(selector) = selector {
                source[NAMESPACE_SELECTOR] = selector.into();
            }
            for kind in [WorkloadRole::Agent, WorkloadRole::Aggregator] {
                assert_eq!(restricted(&source, kind), Ok(expected.clone()));
            }
        }
        for (option, value) in [
            (NAMESPACE_SELECTOR, json!("kubernetes.io/metadata.name=b")),
            (
                NAMESPACE_SELECTOR,
                json!("kubernetes.io/metadata.name=a,x=y"),
            ),
            (NAMESPACE_SELECTOR, json!("SECRET[a.b]")),
            (NAMESPACE_SELECTOR, json!(["x"])),
            ("insert_namespace_fields", json!(false)),
        ] {
            let source = json!({"type": "kubernetes_logs", option: value});
            let error = restricted(&source, WorkloadRole::Agent).expect_err("an error");
            assert!(error.contains(option), "{error}");
        }
    }

    #[test]
    fn nothing_else_on_a_node_is_read() {
        for (name, of_agents, of_aggregators) in [
            ("file", false, false),
            ("journald", false, false),
            ("http_client", false, true),
            ("http_server", false, true),
        ] {
            let source = json!({"type": name});
            assert_eq!(
                restricted(&source, WorkloadRole::Agent).is_ok(),
                of_agents,
                "{name}"
            );
            let found = restricted(&source, WorkloadRole::Aggregator);
            assert_eq!(found.is_ok(), of_aggregators, "{name}");
        }
    }
}
