//! Fields of a Pod template that an apply would change. A change of any of them replaces the Pods.

use serde_json::{Map, Value, json};

use crate::owned::quantity;

/// Returns the paths of the fields in which the Pod template of an observed workload differs from the desired one: those
/// with another value, and those that were applied before and are no longer desired. The API server adds defaults, and
/// other clients add fields; neither is a difference.
pub(crate) fn between(live: &Value, desired: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(
        &desired["spec"]["template"],
        Some(&live["spec"]["template"]),
        &managed_template(live),
        "",
        &mut found,
    );
    found
}

/// Returns the part of `managedFields` that lists the fields of the template with our values: a controller observes no
/// others. Of an object that another operator has created, there is none.
fn managed_template(live: &Value) -> Vec<Value> {
    let entries = live["metadata"]["managedFields"].as_array();
    let entries = entries.into_iter().flatten();
    let templates = entries.filter_map(|entry| entry["fieldsV1"]["f:spec"].get("f:template"));
    templates.cloned().collect()
}

/// Collects the paths of the fields that differ.
fn compare(
    desired: &Value,
    live: Option<&Value>,
    managed: &[Value],
    path: &str,
    found: &mut Vec<String>,
) {
    match (desired, live) {
        (Value::Object(desired), Some(Value::Object(live))) => {
            for (name, value) in desired {
                let managed = below(managed, &format!("f:{name}"));
                compare(value, live.get(name), &managed, &join(path, name), found);
            }
            for name in managed_names(managed, "f:") {
                let live = live.get(&name).filter(|live| !is_default(&name, live));
                if !desired.contains_key(&name) && live.is_some() {
                    found.push(join(path, &name));
                }
            }
        }
        (Value::Array(desired), Some(Value::Array(live)))
            if desired.iter().all(Value::is_object) =>
        {
            compare_items(desired, live, managed, path, found);
        }
        (desired, Some(live)) if desired == live || quantity::are_equal(live, desired) => {}
        // The API server does not store empty values.
        (desired, None) if is_empty(desired) => {}
        _ => found.push(path.to_owned()),
    }
}

/// Compares lists of objects, which the API server may store in another order.
fn compare_items(
    desired: &[Value],
    live: &[Value],
    managed: &[Value],
    path: &str,
    found: &mut Vec<String>,
) {
    for item in desired {
        let key = key_of(item);
        let same = key.and_then(|(field, value)| live.iter().find(|it| it[field] == *value));
        match (key, same) {
            (Some((field, value)), Some(same)) => {
                let prefix = format!("k:{}", json!({field: value}));
                let managed = below(managed, &prefix);
                let name = value.as_str().unwrap_or_default();
                compare(
                    item,
                    Some(same),
                    &managed,
                    &format!("{path}[{name}]"),
                    found,
                );
            }
            (Some((_, value)), None) => {
                let name = value.as_str().unwrap_or_default();
                found.push(format!("{path}[{name}]"));
            }
            (None, _) => {
                let has_equal = live.iter().any(|it| {
                    let mut differences = Vec::new();
                    compare(item, Some(it), &[], path, &mut differences);
                    differences.is_empty()
                });
                if !has_equal {
                    found.push(path.to_owned());
                }
            }
        }
    }
    let keys = managed_names(managed, "k:").into_iter();
    for key in keys {
        let key: Map<String, Value> = serde_json::from_str(&key).unwrap_or_default();
        let is_it = |item: &Value| {
            key.iter().all(|(field, value)| {
                // A key that is left out has a default that the API server sets.
                item.get(field).is_none_or(|it| it == value)
            })
        };
        if !desired.iter().any(is_it) {
            let name = key.values().find_map(Value::as_str).unwrap_or_default();
            found.push(format!("{path}[{name}]"));
        }
    }
    let is_atomic = managed
        .iter()
        .any(|node| node.as_object().is_some_and(Map::is_empty));
    if is_atomic && desired.len() != live.len() {
        found.push(path.to_owned());
    }
}

/// Returns true if the API server sets a field of a Pod template to this value by itself. Of an object that we have created
/// and not applied since, these fields are among ours.
fn is_default(name: &str, value: &Value) -> bool {
    match name {
        "apiVersion" => value == "v1",
        "defaultMode" => value == 420,
        "dnsPolicy" => value == "ClusterFirst",
        "failureThreshold" => value == 3,
        "imagePullPolicy" => value == "IfNotPresent" || value == "Always",
        "periodSeconds" => value == 10,
        "protocol" => value == "TCP",
        "restartPolicy" => value == "Always",
        "scheme" => value == "HTTP",
        "schedulerName" => value == "default-scheduler",
        "securityContext" => *value == json!({}),
        // Another name of `serviceAccountName`.
        "serviceAccount" => true,
        "successThreshold" | "timeoutSeconds" => value == 1,
        "terminationGracePeriodSeconds" => value == 30,
        "terminationMessagePath" => value == "/dev/termination-log",
        "terminationMessagePolicy" => value == "File",
        "type" => value == "",
        _ => false,
    }
}

/// Returns the field that distinguishes the items of a list in the Kubernetes API, with its value.
fn key_of(item: &Value) -> Option<(&'static str, &Value)> {
    let keys = ["mountPath", "name", "ip"];
    keys.into_iter().find_map(|key| Some((key, item.get(key)?)))
}

fn below(managed: &[Value], name: &str) -> Vec<Value> {
    managed
        .iter()
        .filter_map(|node| node.get(name))
        .cloned()
        .collect()
}

/// Returns the names of managed fields or items.
fn managed_names(managed: &[Value], prefix: &str) -> Vec<String> {
    let fields = managed.iter().filter_map(Value::as_object).flatten();
    let names = fields.filter_map(|(name, _)| name.strip_prefix(prefix));
    names.map(str::to_owned).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // The presence of an object can be a choice, as that of `emptyDir` in a volume.
        Value::Object(fields) => !fields.is_empty() && fields.values().all(is_empty),
        Value::Number(_) => false,
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(template: &Value, managed: &Value) -> Value {
        json!({
            "metadata": {"managedFields": [
                {"manager": "lockstep", "fieldsV1": {"f:spec": {"f:template": managed}}},
            ]},
            "spec": {"template": template},
        })
    }

    fn desired() -> Value {
        json!({"spec": {"template": {
            "metadata": {"annotations": {"a": "1"}},
            "spec": {
                "containers": [{
                    "name": "v", "image": "i:1", "args": ["--a"], "resources": {"limits": {"cpu": "1000m"}},
                    "env": [{"name": "A", "value": "1"}], "envFrom": [],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "data", "hostPath": {"path": "/var"}}, {"name": "c", "emptyDir": {}}],
            },
        }}})
    }

    /// Returns the desired workload as the API server stores it.
    fn stored() -> Value {
        let template = json!({
            "metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now", "a": "1"}},
            "spec": {
                "containers": [{
                    "name": "v", "image": "i:1", "args": ["--a"], "resources": {"limits": {"cpu": "1"}},
                    "env": [{"name": "INJECTED", "value": "x"}, {"name": "A", "value": "1"}],
                    "terminationMessagePath": "/dev/termination-log",
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "dnsPolicy": "ClusterFirst", "securityContext": {}, "hostNetwork": true,
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "c", "emptyDir": {}}, {"name": "data", "hostPath": {"path": "/var", "type": ""}}],
            },
        });
        let managed = json!({
            "f:metadata": {"f:annotations": {"f:a": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"v\"}": {
                    ".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:envFrom": {},
                    "f:resources": {"f:limits": {"f:cpu": {}}},
                    "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
                    "f:volumeMounts": {"k:{\"mountPath\":\"/data\"}": {".": {}, "f:name": {}, "f:mountPath": {}}},
                }},
                "f:dnsPolicy": {}, "f:securityContext": {}, "f:tolerations": {},
                "f:volumes": {
                    "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:emptyDir": {}},
                    "k:{\"name\":\"data\"}": {".": {}, "f:name": {}, "f:hostPath": {"f:path": {}, "f:type": {}}},
                },
            },
        });
        workload(&template, &managed)
    }

    #[test]
    fn defaults_and_fields_of_other_clients_are_no_differences() {
        assert_eq!(between(&stored(), &desired()), Vec::<String>::new());
    }

    #[test]
    fn each_changed_added_or_removed_field_is_found() {
        for (pointer, value, expected) in [
            (
                "/metadata/annotations/a",
                json!("2"),
                "metadata.annotations.a",
            ),
            ("/metadata/annotations", json!({}), "metadata.annotations.a"),
            (
                "/spec/containers/0/image",
                json!("i:2"),
                "spec.containers[v].image",
            ),
            (
                "/spec/containers/0/args",
                json!(["--b"]),
                "spec.containers[v].args",
            ),
            (
                "/spec/containers/0/resources",
                json!({}),
                "spec.containers[v].resources.limits",
            ),
            (
                "/spec/containers/0/resources/limits/cpu",
                json!("2"),
                "spec.containers[v].resources.limits.cpu",
            ),
            (
                "/spec/containers/0/env/0/value",
                json!("2"),
                "spec.containers[v].env[A].value",
            ),
            (
                "/spec/containers/0/env",
                json!([]),
                "spec.containers[v].env[A]",
            ),
            (
                "/spec/containers/0/env/0/name",
                json!("B"),
                "spec.containers[v].env[B]",
            ),
            (
                "/spec/containers/0/livenessProbe",
                json!({"httpGet": {"port": 1}}),
                "spec.containers[v].livenessProbe",
            ),
            ("/spec/tolerations", json!([]), "spec.tolerations"),
            (
                "/spec/tolerations/0/operator",
                json!("Equal"),
                "spec.tolerations",
            ),
            (
                "/spec/volumes/0/hostPath/path",
                json!("/x"),
                "spec.volumes[data].hostPath.path",
            ),
            (
                "/spec/volumes/1",
                json!({"name": "c", "secret": {"secretName": "s"}}),
                "spec.volumes[c].secret",
            ),
            (
                "/spec/affinity",
                json!({"nodeAffinity": {"x": 1}}),
                "spec.affinity",
            ),
        ] {
            let mut changed = desired();
            let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
            let parent = changed.pointer_mut(&format!("/spec/template{parent}"));
            let parent = parent.expect("a field");
            match name.parse::<usize>() {
                Ok(at) => parent[at] = value,
                Err(_) => parent[name] = value,
            }
            let found = between(&stored(), &changed);
            assert!(
                found.iter().any(|it| it == expected),
                "{pointer}: {found:?}"
            );
        }
    }
}
