//! Takeover of a child that another client has created for the same owner.
//!
//! Server-side apply removes a field only if none of its managers is left. As long as that client is a manager, too,
//! fields that are no longer desired would stay for ever.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::api::DynamicObject;
use serde_json::{Map, Value};

use crate::field_manager::FieldManager;

/// Returns the managed fields with which the child is ours instead of the client's that has set the owner reference to
/// this owner. None if there is no such client.
///
/// The next apply removes the rest of the client's fields, unless it is desired. Only in a Pod template, it stays without
/// a manager: its removal would restart the Pods.
pub(crate) fn taken_over(
    live: &DynamicObject,
    owner_uid: &str,
    manager: &FieldManager,
) -> Option<Vec<ManagedFieldsEntry>> {
    let entries = live.metadata.managed_fields.as_deref()?;
    let is_of_client = |entry: &&ManagedFieldsEntry| {
        !manager.is_ours(entry)
            && entry.subresource.is_none()
            && entry.operation.as_deref() == Some("Update")
    };
    let owner = format!("k:{{\"uid\":\"{owner_uid}\"}}");
    let has_set_owner = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|it| it["f:metadata"]["f:ownerReferences"].get(&owner).is_some())
    };
    let clients = entries.iter().filter(is_of_client).filter(has_set_owner);
    let clients: BTreeSet<_> = clients.map(|entry| &entry.manager).collect();
    let (theirs, others): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|entry| is_of_client(entry) && clients.contains(&entry.manager));
    let mut ours = theirs.first().map(|entry| (*entry).clone())?;
    let mut fields = Value::Object(Map::new());
    // Fields of another version have other names. Without a manager, they stay as they are.
    for entry in theirs
        .iter()
        .filter(|it| it.api_version == ours.api_version)
    {
        if let Some(more) = &entry.fields_v1 {
            merge(&mut fields, &more.0);
        }
    }
    if let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut) {
        spec.remove("f:template");
    }
    ours.manager = Some(manager.as_str().to_owned());
    ours.operation = Some("Apply".to_owned());
    ours.fields_v1 = Some(FieldsV1(fields));
    // An entry of ours from an earlier apply: two entries of one manager would replace each other.
    let is_same = |entry: &&ManagedFieldsEntry| {
        manager.is_ours(entry)
            && entry.operation == ours.operation
            && entry.api_version == ours.api_version
    };
    for entry in others.iter().filter(|entry| is_same(entry)) {
        if let (Some(fields), Some(more)) = (&mut ours.fields_v1, &entry.fields_v1) {
            merge(&mut fields.0, &more.0);
        }
    }
    let mut result: Vec<_> = others
        .into_iter()
        .filter(|entry| !is_same(entry))
        .cloned()
        .collect();
    result.push(ours);
    Some(result)
}

/// Adds fields to others.
fn merge(fields: &mut Value, more: &Value) {
    if let (Value::Object(fields), Value::Object(more)) = (fields, more) {
        for (name, below) in more {
            merge(
                fields
                    .entry(name)
                    .or_insert_with(|| Value::Object(Map::new())),
                below,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: &Value) -> Value {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource, "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn with_entries(entries: &[Value]) -> DynamicObject {
        let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"managedFields": entries}});
        serde_json::from_value(object).expect("an object")
    }

    fn owned() -> Value {
        json!({"f:ownerReferences": {"k:{\"uid\":\"1\"}": {}}})
    }

    #[test]
    fn fields_of_the_client_that_has_set_the_owner_become_ours_and_others_stay() {
        let status = entry(
            "operator",
            "Update",
            Some("status"),
            &json!({"f:status": {}}),
        );
        let edited = entry(
            "kubectl-edit",
            "Update",
            None,
            &json!({"f:metadata": {"f:labels": {"f:team": {}}}}),
        );
        let applied = entry(
            "operator",
            "Apply",
            None,
            &json!({"f:spec": {"f:paused": {}}}),
        );
        let created = entry(
            "operator",
            "Update",
            None,
            &json!({
                "f:metadata": owned(),
                "f:spec": {"f:minReadySeconds": {}, "f:template": {"f:metadata": {"f:name": {}}}},
            }),
        );
        let updated = entry(
            "operator",
            "Update",
            None,
            &json!({"f:metadata": {"f:labels": {"f:app": {}}}}),
        );
        let kept = [status, edited, applied];
        let all: Vec<_> = kept.iter().cloned().chain([created, updated]).collect();
        let found = taken_over(&with_entries(&all), "1", &FieldManager::new("lockstep"))
            .expect("a takeover");
        let mut metadata = owned();
        metadata["f:labels"] = json!({"f:app": {}});
        let ours = json!({"f:metadata": metadata, "f:spec": {"f:minReadySeconds": {}}});
        let expected: Vec<_> = kept
            .into_iter()
            .chain([entry("lockstep", "Apply", None, &ours)])
            .collect();
        assert_eq!(
            found,
            with_entries(&expected)
                .metadata
                .managed_fields
                .expect("entries")
        );
        assert_eq!(
            taken_over(&with_entries(&all), "2", &FieldManager::new("lockstep")),
            None,
            "another owner"
        );
    }

    #[test]
    fn a_child_that_was_ours_before_keeps_what_we_applied() {
        let ours = entry("lockstep", "Apply", None, &json!({"f:data": {"f:a": {}}}));
        let labels = entry(
            "lockstep",
            "Update",
            None,
            &json!({"f:metadata": {"f:labels": {}}}),
        );
        assert_eq!(
            taken_over(
                &with_entries(&[ours.clone(), labels]),
                "1",
                &FieldManager::new("lockstep")
            ),
            None
        );
        let client = entry("operator", "Update", None, &json!({"f:metadata": owned()}));
        let found = taken_over(
            &with_entries(&[ours, client]),
            "1",
            &FieldManager::new("lockstep"),
        )
        .expect("a takeover");
        let both = json!({"f:data": {"f:a": {}}, "f:metadata": owned()});
        let expected = with_entries(&[entry("lockstep", "Apply", None, &both)]);
        assert_eq!(Some(found), expected.metadata.managed_fields);
    }
}
