//! Ownership of children, and children that are invalid.

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::children::fixture_kind::Toys;

fn config_map(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_child_is_reported_and_changes_nothing() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    toys.family("first", &[config_map(&json!({"name": "shared"}))])
        .await;
    let stored = maps.get("shared").await.expect("the child exists");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    let mut with_status = config_map(&json!({"name": "s"}));
    with_status["status"] = json!({"phase": "Done"});
    let mut unknown = config_map(&json!({"name": "u"}));
    unknown["daat"] = json!({});
    for (name, child, reason, message) in [
        (
            "clash",
            config_map(&json!({"name": "shared"})),
            "ChildNotOwned",
            "belongs to Family 'first'",
        ),
        ("status", with_status, "ChildWithStatus", "has a `status`"),
        (
            "away",
            config_map(&json!({"name": "x", "namespace": "kube-public"})),
            "ChildInOtherNamespace",
            "is in 'default'",
        ),
        (
            "undeclared",
            pod,
            "ChildTypeUndeclared",
            "add an `OwnedType`",
        ),
        ("unknown", unknown, "ChildInvalid", "daat"),
    ] {
        let children = [config_map(&json!({"name": name})), child];
        toys.apply("Family", name, &json!({"children": children}))
            .await;
        let (found, text) = toys
            .wait_for_condition(&families, name, "Stalled", "True")
            .await;
        assert_eq!(found, reason, "{text}");
        assert!(text.contains(message), "{text}");
        let (found, _) = toys
            .wait_for_condition(&families, name, "Ready", "False")
            .await;
        assert_eq!(found, reason);
    }
    let same = maps.get("shared").await.expect("the child exists");
    assert_eq!(
        same.metadata.resource_version,
        stored.metadata.resource_version
    );

    // If the handler returns an error, the existing children are not changed.
    toys.writes();
    toys.apply("Family", "first", &json!({"error": "not today"}))
        .await;
    let (reason, message) = toys
        .wait_for_condition(&families, "first", "Stalled", "True")
        .await;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("AsAsked", "not today")
    );
    assert_eq!(toys.writes(), []);
    assert!(
        maps.get_opt("shared")
            .await
            .expect("the API server answers")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn other_owner_references_are_never_overwritten() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    toys.family("first", &[config_map(&json!({"name": "c"}))])
        .await;
    toys.family("second", &[]).await;
    let second = toys
        .families("default")
        .get("second")
        .await
        .expect("the object exists");
    let stored = maps.get("c").await.expect("the child exists");
    let mut owners = json!(stored.metadata.owner_references);
    owners
        .as_array_mut()
        .expect("owner references are a list")
        .push(json!({
            "apiVersion": "toys.example.com/v1", "kind": "Family",
            "name": "second", "uid": second.uid(),
        }));
    toys.change_as_other_client(
        &maps,
        "c",
        &json!({"metadata": {"ownerReferences": owners}}),
    )
    .await;
    let mut changed = config_map(&json!({"name": "c"}));
    changed["data"]["a"] = json!("changed");
    toys.family("first", &[changed]).await;
    let stored = maps.get("c").await.expect("the child exists");
    assert_eq!(stored.data["data"]["a"], "changed");
    let owners: Vec<_> = stored
        .owner_references()
        .iter()
        .map(|owner| owner.name.as_str())
        .collect();
    assert_eq!(owners, ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_child_are_not_touched_and_a_lost_label_is_restored() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let child = config_map(&json!({"name": "c"}));
    toys.family("a", std::slice::from_ref(&child)).await;
    let created = maps.get("c").await.expect("the child exists");
    let labels = json!({"name": "copy", "labels": created.metadata.labels});
    for namespace in ["default", "kube-public"] {
        let copy = serde_json::from_value(config_map(&labels)).expect("the JSON is an object");
        let there = toys.of("ConfigMap", Some(namespace));
        let params = kube::api::PostParams::default();
        there
            .create(&params, &copy)
            .await
            .expect("the API server stores the copy");
    }
    let unmarked = json!({"metadata": {"labels": {"lockstep.dev/owner-uid": null}}});
    toys.change_as_other_client(&maps, "c", &unmarked).await;
    toys.wait_until(&maps, "c", "to have its label again", |found| {
        found.is_some_and(|found| found.labels().contains_key("lockstep.dev/owner-uid"))
    })
    .await;
    toys.family("a", &[child, config_map(&json!({"name": "other"}))])
        .await;
    for namespace in ["default", "kube-public"] {
        let copy = toys.of("ConfigMap", Some(namespace)).get_opt("copy").await;
        assert!(
            copy.expect("the API server answers").is_some(),
            "{namespace}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_scoped_owners_own_namespaced_children_and_namespaced_owners_track_cluster_scoped_ones()
 {
    let toys = Toys::start().await;
    let child = config_map(&json!({"name": "c", "namespace": "kube-public"}));
    toys.apply("Clan", "clan", &json!({"children": [child]}))
        .await;
    toys.wait_for_condition(&toys.clans(), "clan", "Ready", "True")
        .await;
    let maps = toys.of("ConfigMap", Some("kube-public"));
    let stored = maps.get("c").await.expect("the child exists");
    assert_eq!(stored.owner_references()[0].name, "clan");

    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "quick"}, "value": 7,
    });
    toys.family("a", &[class]).await;
    let classes = toys.of("PriorityClass", None);
    let stored = classes.get("quick").await.expect("the child exists");
    assert_eq!(
        stored.owner_references(),
        [],
        "the garbage collector would delete a cluster-scoped child of a namespaced owner"
    );
    let families = toys.families("default");
    let owner = families.get("a").await.expect("the object exists");
    assert_eq!(owner.finalizers(), ["toys.example.com/finalizer"]);
    families
        .delete("a", &Default::default())
        .await
        .expect("the API server accepts the deletion");
    toys.wait_until_deleted(&families, "a").await;
    assert!(
        classes
            .get_opt("quick")
            .await
            .expect("the API server answers")
            .is_none()
    );
}
