//! Ownership of the fields of a child, from its `managedFields`.
//!
//! A client that changes the value of a field becomes its manager, and a client that removes a field ends its
//! management. A field that is still ours therefore still has the value that we last wrote, in whatever notation
//! the API server stores it. A comparison of values could not decide this: it takes `1000m` for a change of `1`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use crate::field_manager::FieldManager;

/// Returns true if every desired field exists and is ours.
pub(crate) fn owns_all_fields(
    desired: &Value,
    live: &DynamicObject,
    manager: &FieldManager,
) -> bool {
    let entries = live.metadata.managed_fields.iter().flatten();
    let fields = entries
        .filter(|entry| manager.is_ours(entry))
        .filter_map(|entry| entry.fields_v1.as_ref());
    let fields: Vec<_> = fields.map(|fields| &fields.0).collect();
    let Some(desired) = desired.as_object() else {
        return false;
    };
    let metadata = authored_metadata(&live.metadata);
    desired.iter().all(|(name, desired)| match name.as_str() {
        "apiVersion" | "kind" => true,
        "metadata" => {
            let fields = below(&fields, "f:metadata");
            let parts = desired.as_object().into_iter().flatten();
            parts
                .filter(|(name, _)| !matches!(name.as_str(), "name" | "namespace"))
                .all(|(name, desired)| {
                    let live = metadata.get(name).filter(|part| !part.is_null());
                    owns_fields_at(desired, live, &below(&fields, &format!("f:{name}")))
                })
        }
        _ => owns_fields_at(
            desired,
            live.data.get(name),
            &below(&fields, &format!("f:{name}")),
        ),
    })
}

/// Returns the part of an object's metadata that authors set: the managed fields are many times as large.
fn authored_metadata(metadata: &ObjectMeta) -> Value {
    json!({
        "annotations": metadata.annotations,
        "finalizers": metadata.finalizers,
        "labels": metadata.labels,
        "ownerReferences": metadata.owner_references,
    })
}

/// Returns true if a value is ours according to these nodes of `fieldsV1`: one node for each entry that contains
/// the value.
fn owns_fields_at(desired: &Value, live: Option<&Value>, nodes: &[&Value]) -> bool {
    if live.is_none() && is_empty(desired) {
        // Many types do not store empty values.
        return true;
    }
    if nodes.is_empty() {
        return false;
    }
    match desired {
        // The entry lists nothing below this value: it is atomic, or it was empty.
        _ if nodes.iter().any(|node| is_leaf(node)) => true,
        Value::Object(fields) => fields.iter().all(|(name, desired)| {
            let live = live.and_then(|live| live.get(name));
            owns_fields_at(desired, live, &below(nodes, &format!("f:{name}")))
        }),
        Value::Array(items) => {
            let live = live
                .and_then(Value::as_array)
                .map_or(&[][..], Vec::as_slice);
            items.iter().all(|item| owns_item(item, live, nodes))
        }
        _ => true,
    }
}

/// Returns true if an item of a list is ours. It is found by its keys if the list is a map, and otherwise by its
/// value.
fn owns_item(desired: &Value, live: &[Value], nodes: &[&Value]) -> bool {
    let accounts = nodes.iter().filter_map(|node| node.as_object()).flatten();
    let mut of_item = Vec::new();
    let mut of_live = None;
    for (name, account) in accounts {
        if let Some(value) = name.strip_prefix("v:") {
            let value: Option<Value> = serde_json::from_str(value).ok();
            if value.as_ref() == Some(desired) {
                return true;
            }
        } else if let Some(keys) = name.strip_prefix("k:") {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            // A key that is left out has a default that the API server sets.
            let is_it = keys
                .iter()
                .all(|(name, key)| desired.get(name).is_none_or(|value| value == key));
            if is_it {
                of_item.push(account);
                let has_keys =
                    |item: &&Value| keys.iter().all(|(name, key)| item.get(name) == Some(key));
                of_live = of_live.or(live.iter().find(has_keys));
            }
        }
    }
    owns_fields_at(desired, of_live, &of_item)
}

fn below<'a>(nodes: &[&'a Value], name: &str) -> Vec<&'a Value> {
    nodes.iter().filter_map(|node| node.get(name)).collect()
}

/// Returns true if the entry lists nothing below this node.
fn is_leaf(node: &Value) -> bool {
    node.as_object().is_some_and(Map::is_empty)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if every desired field is ours in an object with these managed fields.
    fn is_all_ours(desired: &Value, live: &Value, fields: &[(&str, Value)]) -> bool {
        let entries = fields.iter().map(|(manager, fields)| {
            json!({"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields})
        });
        let mut live = live.clone();
        live["metadata"]["managedFields"] = json!(entries.collect::<Vec<_>>());
        let live = serde_json::from_value(live).expect("an object");
        owns_all_fields(desired, &live, &FieldManager::new("lockstep"))
    }

    /// Managed fields of a Deployment with two ports, an atomic list and a finalizer.
    fn account() -> Value {
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {".": {}, "v:\"x/y\"": {}}},
            "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"main\"}": {
                    ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                    "f:ports": {
                        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                        "k:{\"containerPort\":81,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
                    },
                },
            }}}},
        })
    }

    fn desired() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "n", "labels": {"a": "b"}, "finalizers": ["x/y"]},
            "spec": {"replicas": 1, "template": {"spec": {"hostNetwork": false, "containers": [{
                "name": "main", "image": "i", "args": ["a", "b"], "env": [],
                "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
            }]}}},
        })
    }

    #[test]
    fn items_of_lists_are_found_by_the_list_map_keys_of_the_api_server() {
        let live = json!({});
        let ours =
            |desired: &Value, account: Value| is_all_ours(desired, &live, &[("lockstep", account)]);
        assert!(ours(&desired(), account()));
        for (taken, what) in [
            ("/f:spec/f:replicas", "a field"),
            ("/f:metadata/f:labels/f:a", "a label"),
            ("/f:metadata/f:finalizers/v:\"x~1y\"", "an item of a set"),
            (
                "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}/f:args",
                "an atomic list",
            ),
            (
                "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"main\"}/f:ports/k:{\"containerPort\":81,\"protocol\":\"UDP\"}",
                "an item of a list with keys",
            ),
        ] {
            let mut less = account();
            let (parent, name) = taken.rsplit_once('/').expect("a pointer");
            let parent = less.pointer_mut(parent).and_then(Value::as_object_mut);
            let name = name.replace("~1", "/");
            assert!(parent.expect(what).remove(&name).is_some(), "{what}");
            assert!(
                !ours(&desired(), less),
                "{what} was taken over by another manager"
            );
        }
        let mut more = desired();
        more["spec"]["paused"] = json!(true);
        assert!(!ours(&more, account()), "never written");
    }

    #[test]
    fn an_empty_value_need_not_be_stored_but_must_not_be_filled_by_other_managers() {
        let mut live = json!({});
        live["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
        assert!(!is_all_ours(&desired(), &live, &[("lockstep", account())]));
        for (part, filled) in [
            ("labels", json!({"of": "others"})),
            ("annotations", json!({"of": "others"})),
            ("finalizers", json!(["of/others"])),
            (
                "ownerReferences",
                json!([{"apiVersion": "v1", "kind": "K", "name": "a", "uid": "1"}]),
            ),
        ] {
            let desired = json!({"metadata": {part: []}});
            let ours = |live: &Value| is_all_ours(&desired, live, &[("lockstep", account())]);
            let account = &account()["f:metadata"][format!("f:{part}")];
            // Where the managed fields contain this part, nothing of it is desired any more.
            assert!(ours(&json!({})), "{part}");
            let is_ours = !account.is_null();
            assert_eq!(
                ours(&json!({"metadata": {part: filled}})),
                is_ours,
                "{part}"
            );
        }
    }

    #[test]
    fn entries_of_other_managers_do_not_count_and_all_our_entries_count_together() {
        let of_others = [("kubectl", account())];
        assert!(!is_all_ours(&desired(), &json!({}), &of_others));
        let mut spec = account();
        let metadata = spec
            .as_object_mut()
            .and_then(|all| all.remove("f:metadata"));
        let parts = [
            ("lockstep", spec),
            ("lockstep", json!({"f:metadata": metadata})),
        ];
        assert!(is_all_ours(&desired(), &json!({}), &parts));
    }
}
