//! Cascading deletion: which children are deleted with an object and which are orphaned.

use std::time::Duration;

use control_plane::eventually_within;
use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};
use toolkit::{Leaving, tell};

use crate::fixture_kind::{Family, Toys};

fn plain(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn guarded(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name},
        "automountServiceAccountToken": false,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_protected_child_exists_until_its_owner_releases_it() {
    let toys = Toys::start().await;
    let accounts = toys.of("ServiceAccount", Some("default"));
    let families = toys.families("default");
    toys.family("a", &[guarded("g"), plain("p")]).await;
    for (api, name) in [(&accounts, "g"), (&families, "a")] {
        let found = api.get(name).await.expect("the object exists");
        assert_eq!(found.finalizers(), ["toys.example.com/finalizer"], "{name}");
    }
    accounts
        .delete("g", &DeleteParams::default())
        .await
        .expect("the API server accepts the deletion");
    // One reconciliation later the child still exists and is reported.
    let children = json!({"children": [guarded("g"), plain("other")]});
    toys.tell("Family", "a", &children).await;
    let (_, message) = toys.stands(&families, "a", "Reconciling", "True").await;
    assert_eq!(message, "ServiceAccount 'g' is being deleted");
    toys.becomes(
        &toys.of("ConfigMap", Some("default")),
        "other",
        "to be created",
        |found| found.is_some(),
    )
    .await;
    assert!(
        accounts
            .get_opt("g")
            .await
            .expect("the API server answers")
            .is_some()
    );
    // A child that is no longer desired may be deleted.
    toys.family("a", &[]).await;
    toys.goes(&accounts, "g").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_propagation_policy_completes_and_leaves_the_right_children() {
    let toys = Toys::start().await;
    let [accounts, maps] =
        ["ServiceAccount", "ConfigMap"].map(|type_| toys.of(type_, Some("default")));
    let families = toys.families("default");
    for (name, policy) in [
        ("background", PropagationPolicy::Background),
        ("foreground", PropagationPolicy::Foreground),
        ("orphan", PropagationPolicy::Orphan),
    ] {
        toys.family(name, &[guarded(name), plain(name)]).await;
        let leaves_children = policy == PropagationPolicy::Orphan;
        let params = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        families
            .delete(name, &params)
            .await
            .expect("the API server accepts the deletion");
        toys.goes(&families, name).await;
        for api in [&accounts, &maps] {
            if leaves_children {
                let left = api.get(name).await.expect("the child is orphaned");
                assert_eq!(left.finalizers(), Vec::<String>::new());
                assert_eq!(left.owner_references(), []);
            } else {
                toys.goes(api, name).await;
            }
        }
    }

    // A new object with the same name adopts the orphaned children.
    let left = maps.get("orphan").await.expect("the child is orphaned");
    let mut changed = plain("orphan");
    changed["data"] = json!({"c": "d"});
    toys.family("orphan", &[changed, guarded("orphan")]).await;
    let taken = maps.get("orphan").await.expect("the child exists");
    assert_eq!(taken.data["data"], json!({"c": "d"}));
    let account = accounts.get("orphan").await.expect("the child exists");
    assert_eq!(account.finalizers(), ["toys.example.com/finalizer"]);
    assert_eq!(taken.metadata.uid, left.metadata.uid);
    let owner = families.get("orphan").await.expect("the object exists");
    assert_eq!(Some(&taken.owner_references()[0].uid), owner.uid().as_ref());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_with_the_name_of_a_deleted_one_gets_its_own_children() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    let children = json!({"children": [plain("c")]});
    toys.tell("Family", "a", &children).await;
    let there = |found: Option<&kube::api::DynamicObject>| found.is_some();
    let first = toys.becomes(&maps, "c", "to be created", there).await;
    let first = first.expect("the child exists").uid();
    // A finalizer delays the deletion of the child.
    let held = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    toys.meddle(&maps, "c", &held(&["example.com/held"])).await;
    families
        .delete("a", &DeleteParams::default())
        .await
        .expect("the API server accepts the deletion");
    toys.goes(&families, "a").await;
    toys.tell("Family", "a", &children).await;
    let (reason, _) = toys.stands(&families, "a", "Reconciling", "True").await;
    assert_eq!(reason, "ChildTerminating");
    toys.meddle(&maps, "c", &held(&[])).await;
    let is_another =
        |found: Option<&kube::api::DynamicObject>| found.is_some_and(|found| found.uid() != first);
    toys.becomes(&maps, "c", "to be created again", is_another)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_deleted_even_without_the_garbage_collector() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    for name in ["gone", "again"] {
        toys.family(name, &[plain(name)]).await;
    }
    let first = maps.get("again").await.expect("the child exists").uid();
    let frozen = toys.cluster.freeze_controller_manager();
    frozen.expect("the controller manager can be frozen");
    for name in ["gone", "again"] {
        let params = DeleteParams::background();
        let deleted = families.delete(name, &params).await;
        deleted.expect("the API server accepts the deletion");
        toys.goes(&families, name).await;
    }
    toys.tell("Family", "again", &json!({"children": [plain("again")]}))
        .await;
    // An orphan must be found in two scans. The object that waits for the name retries with the usual back-off.
    let gone = eventually_within(
        Duration::from_mins(3),
        "the orphans to be deleted",
        async || {
            let left = maps.get_opt("gone").await.ok()?;
            let again = maps.get_opt("again").await.ok()??;
            (left.is_none() && again.uid() != first).then_some(())
        },
    );
    gone.await.expect("the orphans are deleted");
    toys.stands(&families, "again", "Ready", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_child_is_updated_according_to_the_strategy_of_its_type() {
    let toys = Toys::start().await;
    let secrets = toys.of("Secret", Some("default"));
    let families = toys.families("default");
    let secret = |password: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "stringData": {"password": password},
        })
    };
    toys.family("a", &[secret("first")]).await;
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    families
        .delete("a", &params)
        .await
        .expect("the API server accepts the deletion");
    toys.goes(&families, "a").await;
    toys.family("a", &[secret("another")]).await;
    let owner = families.get("a").await.expect("the object exists").uid();
    let kept = secrets.get("s").await.expect("the child exists");
    assert_eq!(
        kept.data["data"]["password"], "Zmlyc3Q=",
        "a `CreateOnly` child keeps its content when it is adopted"
    );
    assert_eq!(Some(kept.owner_references()[0].uid.clone()), owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_deleted_with_all_its_objects() {
    let toys = Toys::start().await;
    let namespace = Leaving::make(toys.cluster.client(), "leaving").await;
    let families = toys.families("leaving");
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "leaving"}, "value": 7,
    });
    let spec = json!({"children": [guarded("g"), plain("p"), class]});
    tell::<Family>(&families, "a", &json!({"spec": spec})).await;
    toys.stands(&families, "a", "Ready", "True").await;
    namespace.delete().await;
    namespace.goes().await;
    let classes = toys.of("PriorityClass", None);
    assert!(
        classes
            .get_opt("leaving")
            .await
            .expect("the API server answers")
            .is_none()
    );
}
