//! What goes with an object, and what stays.

use std::time::Duration;

use control_plane::eventually_within;
use kube::ResourceExt;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};
use toolkit::{Leaving, tell};

use crate::family::{Family, Toys};

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
async fn a_guarded_child_stays_until_its_owner_lets_it_go() {
    let toys = Toys::start().await;
    let accounts = toys.of("ServiceAccount", Some("default"));
    let families = toys.families("default");
    toys.family("a", &[guarded("g"), plain("p")]).await;
    for (api, name) in [(&accounts, "g"), (&families, "a")] {
        let found = api.get(name).await.expect("an object");
        assert_eq!(found.finalizers(), ["toys.example.com/finalizer"], "{name}");
    }
    accounts
        .delete("g", &DeleteParams::default())
        .await
        .expect("deletion begins");
    // A round later it is still there, and told.
    let children = json!({"children": [guarded("g"), plain("other")]});
    toys.tell("Family", "a", &children).await;
    let (_, message) = toys.stands(&families, "a", "Reconciling", "True").await;
    assert_eq!(message, "ServiceAccount 'g' is being deleted");
    toys.becomes(
        &toys.of("ConfigMap", Some("default")),
        "other",
        "being made",
        |found| found.is_some(),
    )
    .await;
    assert!(accounts.get_opt("g").await.expect("an answer").is_some());
    // No longer desired, it may go.
    toys.family("a", &[]).await;
    toys.goes(&accounts, "g").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_delete_an_object_ends_and_leaves_what_it_should() {
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
            .expect("deletion begins");
        toys.goes(&families, name).await;
        for api in [&accounts, &maps] {
            if leaves_children {
                let left = api.get(name).await.expect("it is left");
                assert_eq!(left.finalizers(), Vec::<String>::new());
                assert_eq!(left.owner_references(), []);
            } else {
                toys.goes(api, name).await;
            }
        }
    }

    // What was left behind is taken up by whoever comes under the same name.
    let left = maps.get("orphan").await.expect("it is left");
    let mut changed = plain("orphan");
    changed["data"] = json!({"c": "d"});
    toys.family("orphan", &[changed, guarded("orphan")]).await;
    let taken = maps.get("orphan").await.expect("it is there");
    assert_eq!(taken.data["data"], json!({"c": "d"}));
    let account = accounts.get("orphan").await.expect("it is there");
    assert_eq!(account.finalizers(), ["toys.example.com/finalizer"]);
    assert_eq!(taken.metadata.uid, left.metadata.uid);
    let owner = families.get("orphan").await.expect("an object");
    assert_eq!(Some(&taken.owner_references()[0].uid), owner.uid().as_ref());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_under_the_name_of_one_that_has_just_gone_gets_children_of_its_own() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    let children = json!({"children": [plain("c")]});
    toys.tell("Family", "a", &children).await;
    let there = |found: Option<&kube::api::DynamicObject>| found.is_some();
    let first = toys.becomes(&maps, "c", "being made", there).await;
    let first = first.expect("it is there").uid();
    // The child is slow to go.
    let held = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    toys.meddle(&maps, "c", &held(&["example.com/held"])).await;
    families
        .delete("a", &DeleteParams::default())
        .await
        .expect("deletion begins");
    toys.goes(&families, "a").await;
    toys.tell("Family", "a", &children).await;
    let (reason, _) = toys.stands(&families, "a", "Reconciling", "True").await;
    assert_eq!(reason, "ChildLeaving");
    toys.meddle(&maps, "c", &held(&[])).await;
    let is_another =
        |found: Option<&kube::api::DynamicObject>| found.is_some_and(|found| found.uid() != first);
    toys.becomes(&maps, "c", "being made anew", is_another)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_garbage_collector_misses_goes_all_the_same() {
    let toys = Toys::start().await;
    let maps = toys.of("ConfigMap", Some("default"));
    let families = toys.families("default");
    for name in ["gone", "again"] {
        toys.family(name, &[plain(name)]).await;
    }
    let first = maps.get("again").await.expect("it is there").uid();
    let frozen = toys.cluster.freeze_controller_manager();
    frozen.expect("there is no garbage collector any more");
    for name in ["gone", "again"] {
        let params = DeleteParams::background();
        let deleted = families.delete(name, &params).await;
        deleted.expect("deletion begins");
        toys.goes(&families, name).await;
    }
    toys.tell("Family", "again", &json!({"children": [plain("again")]}))
        .await;
    // They have to be found twice, and who waits for the name to be free looks again as after any failure.
    let gone = eventually_within(Duration::from_mins(3), "the children going", async || {
        let left = maps.get_opt("gone").await.ok()?;
        let again = maps.get_opt("again").await.ok()??;
        (left.is_none() && again.uid() != first).then_some(())
    });
    gone.await.expect("they go");
    toys.stands(&families, "again", "Ready", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_adopted_stays_as_its_type_says() {
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
        .expect("deletion begins");
    toys.goes(&families, "a").await;
    toys.family("a", &[secret("another")]).await;
    let owner = families.get("a").await.expect("an object").uid();
    let kept = secrets.get("s").await.expect("it is there");
    assert_eq!(
        kept.data["data"]["password"], "Zmlyc3Q=",
        "nobody may lose a password"
    );
    assert_eq!(Some(kept.owner_references()[0].uid.clone()), owner);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_all_that_is_in_it() {
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
            .expect("an answer")
            .is_none()
    );
}
