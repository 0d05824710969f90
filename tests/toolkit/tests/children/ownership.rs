//! Whose a child is, and what nobody's child can be.

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::family::Toys;

fn config_map(metadata: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_child_is_told_and_changes_nothing() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    toys.family("first", &[config_map(&json!({"name": "shared"}))])
        .await;
    let stored = maps.get("shared").await.expect("a child");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    let mut with_status = config_map(&json!({"name": "s"}));
    with_status["status"] = json!({"phase": "Done"});
    let mut unknown = config_map(&json!({"name": "u"}));
    unknown["daat"] = json!({});
    for (name, child, reason, message) in [
        (
            "clash",
            config_map(&json!({"name": "shared"})),
            "ChildNotOurs",
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
            "add a `ChildType`",
        ),
        ("unknown", unknown, "ChildInvalid", "daat"),
    ] {
        let children = [config_map(&json!({"name": name})), child];
        toys.tell("Family", name, &json!({"children": children}))
            .await;
        let (found, told) = toys.stands(&families, name, "Stalled", "True").await;
        assert_eq!(found, reason, "{told}");
        assert!(told.contains(message), "{told}");
        let (found, _) = toys.stands(&families, name, "Ready", "False").await;
        assert_eq!(found, reason);
    }
    let same = maps.get("shared").await.expect("a child");
    assert_eq!(
        same.metadata.resource_version,
        stored.metadata.resource_version
    );

    // With an error, the children stay as they are.
    toys.writes();
    toys.tell("Family", "first", &json!({"error": "not today"}))
        .await;
    let (reason, message) = toys.stands(&families, "first", "Stalled", "True").await;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("AsAsked", "not today")
    );
    assert_eq!(toys.writes(), []);
    assert!(maps.get_opt("shared").await.expect("an answer").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_owners_stay_and_are_never_written_over() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    toys.family("first", &[config_map(&json!({"name": "c"}))])
        .await;
    toys.family("second", &[]).await;
    let second = toys
        .families("default")
        .get("second")
        .await
        .expect("an object");
    let stored = maps.get("c").await.expect("a child");
    let mut owners = json!(stored.metadata.owner_references);
    owners.as_array_mut().expect("owners").push(json!({
        "apiVersion": "toys.example.com/v1", "kind": "Family",
        "name": "second", "uid": second.uid(),
    }));
    toys.meddle(
        &maps,
        "c",
        &json!({"metadata": {"ownerReferences": owners}}),
    )
    .await;
    let mut changed = config_map(&json!({"name": "c"}));
    changed["data"]["a"] = json!("changed");
    toys.family("first", &[changed]).await;
    let stored = maps.get("c").await.expect("a child");
    assert_eq!(stored.data["data"]["a"], "changed");
    let owners: Vec<_> = stored
        .owner_references()
        .iter()
        .map(|owner| owner.name.as_str())
        .collect();
    assert_eq!(owners, ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_are_left_alone_and_what_has_lost_its_label_is_marked_again() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let child = config_map(&json!({"name": "c"}));
    toys.family("a", std::slice::from_ref(&child)).await;
    let made = maps.get("c").await.expect("a child");
    let labels = json!({"name": "copy", "labels": made.metadata.labels});
    for namespace in ["default", "kube-public"] {
        let copy = serde_json::from_value(config_map(&labels)).expect("an object");
        let there = toys.of("ConfigMap", Some(namespace));
        let params = kube::api::PostParams::default();
        there.create(&params, &copy).await.expect("it is stored");
    }
    let unmarked = json!({"metadata": {"labels": {"lockstep.dev/owner": null}}});
    toys.meddle(&maps, "c", &unmarked).await;
    toys.becomes(&maps, "c", "being marked again", |found| {
        found.is_some_and(|found| found.labels().contains_key("lockstep.dev/owner"))
    })
    .await;
    toys.family("a", &[child, config_map(&json!({"name": "other"}))])
        .await;
    for namespace in ["default", "kube-public"] {
        let copy = toys.of("ConfigMap", Some(namespace)).get_opt("copy").await;
        assert!(copy.expect("an answer").is_some(), "{namespace}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_no_namespace_owns_children_in_any_and_one_in_a_namespace_tracks_those_in_none()
{
    let toys = Toys::start().await;
    let child = config_map(&json!({"name": "c", "namespace": "kube-public"}));
    toys.tell("Clan", "clan", &json!({"children": [child]}))
        .await;
    toys.stands(&toys.clans(), "clan", "Ready", "True").await;
    let maps = toys.of("ConfigMap", Some("kube-public"));
    let stored = maps.get("c").await.expect("a child");
    assert_eq!(stored.owner_references()[0].name, "clan");

    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "quick"}, "value": 7,
    });
    toys.family("a", &[class]).await;
    let classes = toys.of("PriorityClass", None);
    let stored = classes.get("quick").await.expect("a child");
    assert_eq!(
        stored.owner_references(),
        [],
        "the garbage collector would take it for an orphan"
    );
    let families = toys.families("default");
    let owner = families.get("a").await.expect("an object");
    assert_eq!(owner.finalizers(), ["toys.example.com/finalizer"]);
    families
        .delete("a", &Default::default())
        .await
        .expect("it goes");
    toys.goes(&families, "a").await;
    assert!(classes.get_opt("quick").await.expect("an answer").is_none());
}
