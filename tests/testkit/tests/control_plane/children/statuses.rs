//! Status updates and their field ownership.

use lockstep_envtest::kstatus;
use serde_json::{Value, json};

use crate::children::fixture_kind::Toys;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// Returns the writes to the objects of the operator and to their children.
fn writes(toys: &Toys) -> Vec<(&'static str, String)> {
    let writes = toys.calls.take_writes().into_iter();
    let writes = writes.filter(|call| call.resource != "events");
    writes.map(|call| (call.verb, call.resource)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_costs_one_call_for_each_child_and_one_for_its_status() {
    let toys = Toys::start().await;
    let families = toys.families("default");
    toys.family("warm", &[]).await;
    writes(&toys);
    toys.family("a", &[config_map("one"), config_map("two")])
        .await;
    let created = [
        // The finalizer, without which cluster-scoped children, which this kind may have, would be left behind.
        ("patch", "families"),
        ("create", "configmaps"),
        ("create", "configmaps"),
        ("patch", "families/status"),
    ];
    assert_eq!(
        writes(&toys),
        created.map(|(verb, resource)| (verb, resource.to_owned()))
    );
    // A null from the handler does not change status fields of other clients.
    let by_hand = json!({"status": {"state": "by hand"}});
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(&by_hand);
    families
        .patch_status("a", &params, &patch)
        .await
        .expect("the API server stores the status");
    toys.family("a", &[config_map("one")]).await;
    let object = families.get("a").await.expect("the object exists");
    assert_eq!(object.data["status"]["state"], "by hand");
    assert_eq!(
        object.data["status"]["observedGeneration"],
        json!(object.metadata.generation)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_reported_in_the_status_fields_of_the_kind_and_changes_no_child() {
    let toys = Toys::start().await;
    let clans = toys.clans();
    let mut child = config_map("c");
    child["metadata"]["namespace"] = json!("default");
    toys.apply("Clan", "a", &json!({"children": [child]})).await;
    toys.wait_for_condition(&clans, "a", "Ready", "True").await;
    let object = clans.get("a").await.expect("the object exists");
    assert_eq!(object.data["status"]["state"], "fine");
    toys.writes();

    toys.apply("Clan", "a", &json!({"error": "the soup is cold"}))
        .await;
    let (reason, message) = toys
        .wait_for_condition(&clans, "a", "Stalled", "True")
        .await;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("Upset", "upset: the soup is cold")
    );
    let object = clans.get("a").await.expect("the object exists");
    assert_eq!(object.data["status"]["state"], "upset: the soup is cold");
    assert_eq!(toys.writes(), []);
    let maps = toys.of("ConfigMap", Some("default"));
    assert!(
        maps.get_opt("c")
            .await
            .expect("the API server answers")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_status_is_written_for_a_kind_without_a_status_subresource() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    toys.apply("Crowd", "a", &json!({"children": [config_map("c")]}))
        .await;
    toys.wait_until(&maps, "c", "to be created", |found| found.is_some())
        .await;
    toys.apply("Crowd", "a", &json!({"children": [config_map("d")]}))
        .await;
    toys.wait_until(&maps, "d", "to be created", |found| found.is_some())
        .await;
    toys.wait_until_deleted(&maps, "c").await;
    let object = toys.crowds().get("a").await.expect("the object exists");
    assert_eq!(object.data.get("status"), None);
    let to_it: Vec<_> = writes(&toys)
        .into_iter()
        .filter(|(_, of)| of.starts_with("crowds"))
        .collect();
    assert_eq!(
        to_it,
        [("patch", "crowds".to_owned())],
        "only the finalizer may be written"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kstatus_computes_the_same_health_as_the_controller() {
    let toys = Toys::start().await;
    let families = toys.families("default");
    let read = async || {
        let object = families.get("a").await.expect("the object exists");
        kstatus(&serde_json::to_value(object).expect("the object is valid JSON"))
            .expect("kstatus computes a status")
    };
    toys.family("a", &[config_map("c")]).await;
    assert_eq!(read().await, "Current");

    // No node runs its Pods.
    let labels = json!({"app": "a"});
    let pod = json!({"containers": [{"name": "main", "image": "i"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    });
    toys.apply("Family", "a", &json!({"children": [deployment]}))
        .await;
    let (_, message) = toys
        .wait_for_condition(&families, "a", "Reconciling", "True")
        .await;
    assert!(message.starts_with("Deployment 'd' "), "{message}");
    assert_eq!(read().await, "InProgress");

    toys.apply("Family", "a", &json!({"error": "not today"}))
        .await;
    toys.wait_for_condition(&families, "a", "Stalled", "True")
        .await;
    assert_eq!(read().await, "Failed");

    toys.family("a", &[]).await;
    assert_eq!(read().await, "Current");
    let held =
        json!({"metadata": {"finalizers": ["toys.example.com/finalizer", "example.com/held"]}});
    toys.change_as_other_client(&families, "a", &held).await;
    families
        .delete("a", &kube::api::DeleteParams::default())
        .await
        .expect("the API server accepts the deletion");
    assert_eq!(read().await, "Terminating");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requested_reconciliation_is_reported_as_handled_also_with_an_error() {
    const HANDLED: &str = "lastHandledReconcileAt";
    let toys = Toys::start().await;
    let families = toys.families("default");
    let request = |value: Value| {
        let annotations = json!({"lockstep.dev/reconcile-requested-at": value});
        json!({"metadata": {"annotations": annotations}})
    };
    toys.family("a", &[]).await;
    let object = families.get("a").await.expect("the object exists");
    assert_eq!(object.data["status"][HANDLED], Value::Null);
    writes(&toys);
    for (error, value) in [(Value::Null, "first"), (json!("not today"), "second")] {
        toys.apply("Family", "a", &json!({"error": error})).await;
        toys.change_as_other_client(&families, "a", &request(json!(value)))
            .await;
        toys.wait_until(&families, "a", "to be handled", |found| {
            found.is_some_and(|object| object.data["status"][HANDLED] == value)
        })
        .await;
    }
    // A removed request is none.
    toys.wait_for_condition(&families, "a", "Stalled", "True")
        .await;
    writes(&toys);
    toys.change_as_other_client(&families, "a", &request(Value::Null))
        .await;
    toys.family("a", &[]).await;
    let object = families.get("a").await.expect("the object exists");
    assert_eq!(object.data["status"][HANDLED], "second");
    assert_eq!(writes(&toys), [("patch", "families/status".to_owned())]);
}
