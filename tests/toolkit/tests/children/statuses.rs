//! What is written into a status, and by whom.

use control_plane::kstatus;
use serde_json::{Value, json};

use crate::family::Toys;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// The writes to an object of ours and to its children.
fn writes(toys: &Toys) -> Vec<(&'static str, String)> {
    let writes = toys.calls.take_writes().into_iter();
    let writes = writes.filter(|call| call.resource != "events");
    writes.map(|call| (call.verb, call.resource)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_costs_a_call_for_each_child_and_one_for_its_status() {
    let toys = Toys::start().await;
    let families = toys.families("default");
    toys.family("warm", &[]).await;
    writes(&toys);
    toys.family("a", &[config_map("one"), config_map("two")])
        .await;
    let made = [
        // What keeps children in no namespace, which this kind may have, from being left behind.
        ("patch", "families"),
        ("create", "configmaps"),
        ("create", "configmaps"),
        ("patch", "families/status"),
    ];
    assert_eq!(
        writes(&toys),
        made.map(|(verb, resource)| (verb, resource.to_owned()))
    );
    // A null from the handler leaves the author's fields alone.
    let by_hand = json!({"status": {"mood": "by hand"}});
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(&by_hand);
    families
        .patch_status("a", &params, &patch)
        .await
        .expect("it is written");
    toys.family("a", &[config_map("one")]).await;
    let object = families.get("a").await.expect("an object");
    assert_eq!(object.data["status"]["mood"], "by hand");
    assert_eq!(
        object.data["status"]["observedGeneration"],
        json!(object.metadata.generation)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_told_in_the_words_of_the_kind_and_changes_no_child() {
    let toys = Toys::start().await;
    let clans = toys.clans();
    let mut child = config_map("c");
    child["metadata"]["namespace"] = json!("default");
    toys.tell("Clan", "a", &json!({"children": [child]})).await;
    toys.stands(&clans, "a", "Ready", "True").await;
    let object = clans.get("a").await.expect("an object");
    assert_eq!(object.data["status"]["mood"], "fine");
    toys.writes();

    toys.tell("Clan", "a", &json!({"error": "the soup is cold"}))
        .await;
    let (reason, message) = toys.stands(&clans, "a", "Stalled", "True").await;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("Upset", "upset: the soup is cold")
    );
    let object = clans.get("a").await.expect("an object");
    assert_eq!(object.data["status"]["mood"], "upset: the soup is cold");
    assert_eq!(toys.writes(), []);
    let maps = toys.of("ConfigMap", Some("default"));
    assert!(maps.get_opt("c").await.expect("an answer").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_a_status_of_its_own_is_never_given_one() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    toys.tell("Crowd", "a", &json!({"children": [config_map("c")]}))
        .await;
    toys.becomes(&maps, "c", "being made", |found| found.is_some())
        .await;
    toys.tell("Crowd", "a", &json!({"children": [config_map("d")]}))
        .await;
    toys.becomes(&maps, "d", "being made", |found| found.is_some())
        .await;
    toys.goes(&maps, "c").await;
    let object = toys.crowds().get("a").await.expect("an object");
    assert_eq!(object.data.get("status"), None);
    let to_it: Vec<_> = writes(&toys)
        .into_iter()
        .filter(|(_, of)| of.starts_with("crowds"))
        .collect();
    assert_eq!(
        to_it,
        [("patch", "crowds".to_owned())],
        "but for its finalizer"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_stands_in_the_eyes_of_kstatus_as_it_does_in_ours() {
    let toys = Toys::start().await;
    let families = toys.families("default");
    let read = async || {
        let object = families.get("a").await.expect("an object");
        kstatus(&serde_json::to_value(object).expect("JSON")).expect("it is read")
    };
    toys.family("a", &[config_map("c")]).await;
    assert_eq!(read().await, "Current");

    // No node runs it.
    let labels = json!({"app": "a"});
    let pod = json!({"containers": [{"name": "main", "image": "i"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    });
    toys.tell("Family", "a", &json!({"children": [deployment]}))
        .await;
    let (_, message) = toys.stands(&families, "a", "Reconciling", "True").await;
    assert!(message.starts_with("Deployment 'd' "), "{message}");
    assert_eq!(read().await, "InProgress");

    toys.tell("Family", "a", &json!({"error": "not today"}))
        .await;
    toys.stands(&families, "a", "Stalled", "True").await;
    assert_eq!(read().await, "Failed");

    toys.family("a", &[]).await;
    assert_eq!(read().await, "Current");
    let held =
        json!({"metadata": {"finalizers": ["toys.example.com/finalizer", "example.com/held"]}});
    toys.meddle(&families, "a", &held).await;
    families
        .delete("a", &kube::api::DeleteParams::default())
        .await
        .expect("deletion begins");
    assert_eq!(read().await, "Terminating");
}
