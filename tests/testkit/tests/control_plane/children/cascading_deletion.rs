//! Cascading deletion: which children are deleted with an object and which are orphaned.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use lockstep_envtest::eventually_within;
use lockstep_test::{TemporaryNamespace, apply};
use serde_json::{Value, json};

use crate::children::fixture_kind::{Family, Toys};

fn plain(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn with_finalizer(name: &str) -> Value {
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
    toys.family("a", &[with_finalizer("g"), plain("p")]).await;
    for (api, name) in [(&accounts, "g"), (&families, "a")] {
        let found = api.get(name).await.expect("the object exists");
        assert_eq!(found.finalizers(), ["toys.example.com/finalizer"], "{name}");
    }
    accounts
        .delete("g", &DeleteParams::default())
        .await
        .expect("the API server accepts the deletion");
    // One reconciliation later the child still exists and is reported.
    let children = json!({"children": [with_finalizer("g"), plain("other")]});
    toys.apply("Family", "a", &children).await;
    let (_, message) = toys
        .wait_for_condition(&families, "a", "Reconciling", "True")
        .await;
    assert_eq!(message, "ServiceAccount 'g' is being deleted");
    toys.wait_until(
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
    toys.wait_until_deleted(&accounts, "g").await;
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
        toys.family(name, &[with_finalizer(name), plain(name)])
            .await;
        let leaves_children = policy == PropagationPolicy::Orphan;
        let params = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        families
            .delete(name, &params)
            .await
            .expect("the API server accepts the deletion");
        toys.wait_until_deleted(&families, name).await;
        for api in [&accounts, &maps] {
            if leaves_children {
                let left = api.get(name).await.expect("the child is orphaned");
                assert_eq!(left.finalizers(), Vec::<String>::new());
                assert_eq!(left.owner_references(), []);
            } else {
                toys.wait_until_deleted(api, name).await;
            }
        }
    }

    // A new object with the same name adopts the orphaned children.
    let left = maps.get("orphan").await.expect("the child is orphaned");
    let mut changed = plain("orphan");
    changed["data"] = json!({"c": "d"});
    toys.family("orphan", &[changed, with_finalizer("orphan")])
        .await;
    let adopted = maps.get("orphan").await.expect("the child exists");
    assert_eq!(adopted.data["data"], json!({"c": "d"}));
    let account = accounts.get("orphan").await.expect("the child exists");
    assert_eq!(account.finalizers(), ["toys.example.com/finalizer"]);
    assert_eq!(adopted.metadata.uid, left.metadata.uid);
    let owner = families.get("orphan").await.expect("the object exists");
    assert_eq!(
        Some(&adopted.owner_references()[0].uid),
        owner.uid().as_ref()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_with_the_name_of_a_deleted_one_gets_its_own_children() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    let children = json!({"children": [plain("c")]});
    toys.apply("Family", "a", &children).await;
    let exists = |found: Option<&kube::api::DynamicObject>| found.is_some();
    let first = toys.wait_until(&maps, "c", "to be created", exists).await;
    let first = first.expect("the child exists").uid();
    // A finalizer delays the deletion of the child.
    let held = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    toys.change_as_other_client(&maps, "c", &held(&["example.com/held"]))
        .await;
    families
        .delete("a", &DeleteParams::default())
        .await
        .expect("the API server accepts the deletion");
    toys.wait_until_deleted(&families, "a").await;
    toys.apply("Family", "a", &children).await;
    let (reason, _) = toys
        .wait_for_condition(&families, "a", "Reconciling", "True")
        .await;
    assert_eq!(reason, "ChildTerminating");
    toys.change_as_other_client(&maps, "c", &held(&[])).await;
    let is_another =
        |found: Option<&kube::api::DynamicObject>| found.is_some_and(|found| found.uid() != first);
    toys.wait_until(&maps, "c", "to be created again", is_another)
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
        toys.wait_until_deleted(&families, name).await;
    }
    toys.apply("Family", "again", &json!({"children": [plain("again")]}))
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
    toys.wait_for_condition(&families, "again", "Ready", "True")
        .await;
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
    toys.wait_until_deleted(&families, "a").await;
    toys.family("a", &[secret("another")]).await;
    let owner = families.get("a").await.expect("the object exists").uid();
    let remaining = secrets.get("s").await.expect("the child exists");
    assert_eq!(
        remaining.data["data"]["password"], "Zmlyc3Q=",
        "a `CreateOnly` child keeps its content when it is adopted"
    );
    assert_eq!(Some(remaining.owner_references()[0].uid.clone()), owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_deleted_with_all_its_objects() {
    let toys = Toys::start().await;
    let namespace = TemporaryNamespace::make(toys.cluster.client(), "leaving").await;
    let families = toys.families("leaving");
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "leaving"}, "value": 7,
    });
    let spec = json!({"children": [with_finalizer("g"), plain("p"), class]});
    apply::<Family>(&families, "a", &json!({"spec": spec})).await;
    toys.wait_for_condition(&families, "a", "Ready", "True")
        .await;
    namespace.delete().await;
    namespace.wait_until_deleted().await;
    let classes = toys.of("PriorityClass", None);
    assert!(
        classes
            .get_opt("leaving")
            .await
            .expect("the API server answers")
            .is_none()
    );
}
