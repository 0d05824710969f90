//! Comparison of what exists with what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject, ListParams};
use serde_json::Value;

use crate::chaos::expectations::{
    ActualState, BrokenInvariant, contains, is_unchanged, take_match,
};
use crate::chaos::owned_objects::OwnedObjects;
use crate::chaos::owned_objects::value_of;
use crate::chaos::violation::{Property, Violation};
use crate::chaos::workload::Workload;

/// Returns every difference between what exists and what was asked for.
pub(crate) async fn differences(users: &Workload, owned: &OwnedObjects) -> Vec<Violation> {
    let listed = users.api.list(&ListParams::default()).await;
    let listed = listed.expect("the API server lists the objects");
    let existing: BTreeMap<_, _> = listed
        .into_iter()
        .map(|object| (object.name_any(), value_of(&object)))
        .collect();
    let mut found = Vec::new();
    let all_resources = users.trial.resources().await;
    let mut resources: Vec<_> = all_resources.clone().into_iter().collect();
    for (id, content) in &users.foreign {
        let at = resources.iter().position(|(it, _)| it == id);
        let current = at.map(|at| resources.remove(at).1);
        if !is_unchanged(current.as_ref(), content) {
            found.push(Violation::new(
                Property::ExternalState,
                &owner_in(users, content),
                format!("the resource of another owner is unchanged: {content}"),
                current.unwrap_or_default().to_string(),
            ));
        }
    }
    for (name, wanted) in &users.wanted {
        let object = existing.get(name);
        match (&wanted.spec, object) {
            (None, None) => {}
            (None, Some(object)) => found.push(Violation::new(
                Property::Deletion,
                name,
                "the object is removed",
                format!("it exists with the metadata {}", object["metadata"]),
            )),
            (Some(_), None) => found.push(Violation::new(
                Property::Spec,
                name,
                "the object exists",
                "it does not exist",
            )),
            (Some(spec), Some(object)) => {
                let is_free = wanted.occupied_by.is_empty();
                if !contains(&object["spec"], spec) {
                    let spec_now = object["spec"].to_string();
                    found.push(Violation::new(
                        Property::Spec,
                        name,
                        spec.to_string(),
                        spec_now,
                    ));
                }
                external(users, name, object, is_free, &mut resources, &mut found);
                status(users, name, object, is_free, &mut found);
            }
        }
    }
    for (id, content) in resources {
        let name = owner_in(users, &content);
        let exists = users.wanted.get(&name).is_some_and(|it| it.spec.is_some());
        let property = if exists {
            Property::ExternalState
        } else {
            Property::NoOrphans
        };
        let expected = "no other resource than those that the objects want";
        found.push(Violation::new(
            property,
            &name,
            expected,
            format!("{id}: {content}"),
        ));
    }
    let children = owned.list_without(users.related.known()).await;
    let actual = ActualState {
        objects: existing.values().cloned().collect(),
        owned: children.iter().map(|(_, child)| value_of(child)).collect(),
        related: users.related.list().await,
        resources: all_resources,
    };
    found.extend(owned_objects(users, owned, &existing, children).await);
    for holds in &users.trial.expectations.invariants {
        if let Err(broken) = holds(&actual) {
            let expected = "the author's property holds";
            let BrokenInvariant {
                object,
                found: state,
            } = broken;
            found.push(Violation::new(
                Property::Invariant,
                &object,
                expected,
                state,
            ));
        }
    }
    found
}

/// Compares the resources of an object with those that it wants, and removes them from the list.
fn external(
    users: &Workload,
    name: &str,
    object: &Value,
    is_free: bool,
    resources: &mut Vec<(String, Value)>,
    found: &mut Vec<Violation>,
) {
    for expected in (users.trial.expectations.external)(object) {
        let matched = take_match(resources, &expected, |(_, content)| content);
        if matched.is_none() && is_free {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let similar = resources.iter().map(|(_, content)| content.to_string());
            let similar: Vec<_> = similar.filter(|it| it.contains(uid)).collect();
            found.push(Violation::new(
                Property::ExternalState,
                name,
                format!("the external system has {expected}"),
                format!("of this object it has [{}]", similar.join(", ")),
            ));
        }
    }
}

fn status(users: &Workload, name: &str, object: &Value, is_free: bool, found: &mut Vec<Violation>) {
    let (status, generation) = (&object["status"], &object["metadata"]["generation"]);
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    let ready = ready.next().unwrap_or(&Value::Null);
    let is_ready = ready["status"] == "True" && ready["observedGeneration"] == *generation;
    let mut differs = |expected: String, shown: &Value| {
        found.push(Violation::new(
            Property::Status,
            name,
            expected,
            shown.to_string(),
        ));
    };
    if is_free && !is_ready {
        differs(format!("Ready=True with generation {generation}"), ready);
    }
    if !is_free && ready["status"] != "False" {
        differs(
            "Ready=False while another owner has what the object wants".to_owned(),
            ready,
        );
    }
    if status["observedGeneration"] != *generation {
        differs(
            format!("observedGeneration {generation}"),
            &status["observedGeneration"],
        );
    }
    let expected = (users.trial.expectations.status)(object);
    if is_free && !contains(status, &expected) {
        differs(format!("a status with {expected}"), status);
    }
}

async fn owned_objects(
    users: &Workload,
    owned: &OwnedObjects,
    existing: &BTreeMap<String, Value>,
    mut left: Vec<(ApiResource, DynamicObject)>,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let uids = existing
        .values()
        .filter_map(|it| it["metadata"]["uid"].as_str());
    let uids: BTreeSet<_> = uids.map(str::to_owned).collect();
    for (name, object) in existing {
        let wanted = &users.wanted[name];
        if wanted.spec.is_none() {
            continue;
        }
        for expected in (users.trial.expectations.owned)(object) {
            let is_it = |child: &DynamicObject| {
                child.name_any() == expected["metadata"]["name"].as_str().unwrap_or_default()
            };
            let same = left
                .iter()
                .position(|(resource, it)| resource.kind == expected["kind"] && is_it(it));
            let child = same.map(|at| left.remove(at).1);
            if wanted.occupied_by.is_empty()
                && let Some(difference) = owned_difference(object, &expected, child.as_ref())
            {
                found.push(Violation::new(
                    Property::OwnedObjects,
                    name,
                    format!("an owned object with {expected}"),
                    difference,
                ));
            }
        }
    }
    for (resource, child) in left {
        let is_deleted = owned.collect(&resource, &child, &uids).await;
        if !is_deleted {
            found.push(Violation::new(
                Property::NoOrphans,
                &owner_in(users, &value_of(&child)),
                "no other owned object than those that the objects want",
                format!("{} {}", resource.kind, value_of(&child)["metadata"]),
            ));
        }
    }
    found
}

/// Returns what is wrong with an owned object, if anything is.
fn owned_difference(
    owner: &Value,
    expected: &Value,
    child: Option<&DynamicObject>,
) -> Option<String> {
    let Some(child) = child else {
        return Some("it does not exist".to_owned());
    };
    let mut references = child.owner_references().iter();
    let uid = owner["metadata"]["uid"].as_str().unwrap_or_default();
    let is_owned =
        references.any(|reference| reference.uid == uid && reference.controller == Some(true));
    if !is_owned {
        return Some(format!(
            "without a controller owner reference to {uid}: {:?}",
            child.owner_references()
        ));
    }
    let found = value_of(child);
    (!contains(&found, expected)).then(|| found.to_string())
}

/// Returns the name of the object that a resource belongs to, as far as its content shows it.
fn owner_in(users: &Workload, content: &Value) -> String {
    let text = content.to_string();
    let mut names = users.names.iter();
    let owner = names.find(|(uid, _)| text.contains(uid.as_str()));
    owner.map_or_else(String::new, |(_, name)| name.clone())
}
