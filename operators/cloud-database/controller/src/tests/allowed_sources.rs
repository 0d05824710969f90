//! Sources of data without an owner, or of an object of another cluster.

use rds_simulator::Disturbance;
use serde_json::json;

use crate::origin::allowed_sources::NamespaceSources;
use crate::origin::source_policy::{SourcePolicy, UnownedSources};
use crate::tests::environment::{Environment, Told};
use crate::tests::sources::{Source, create};

/// Source without an owner, and an instance that can be adopted.
async fn unowned(env: &Environment) -> Source {
    let source = Source::create(env, "legacy", &[("other", "tag")]).await;
    create(&env.rds, "legacy", &[], true);
    env.rds.advance(std::time::Duration::from_hours(1));
    source
}

/// Adopts the instance `legacy` with an object that has the name, and returns the reason if that is refused.
async fn adopt_legacy(env: &Environment, name: &str) -> Option<Told> {
    env.store(name, &json!({"adopt": {"identifier": "legacy"}}));
    let mut output = env.reconcile(name).await;
    if output.error.is_none() {
        // The location was recorded first.
        output = env.reconcile(name).await;
    }
    output.error.is_some().then(|| Told::of(&output))
}

#[tokio::test]
async fn data_without_an_owner_is_read_only_if_an_administrator_lists_it() {
    let env = Environment::start().await;
    let source = unowned(&env).await;
    source.check(&env, false).await;
    env.allow_sources("legacy-false,of-legacy,orders-*");
    let told = adopt_legacy(&env, "first").await.expect("a refusal");
    assert_eq!((told.is_stalled, told.reason), (true, "SourceNotAllowed"));
    let command = "kubectl annotate namespace shop --overwrite 'database.example.com/allowed-sources=legacy-false,of-legacy,orders-*,legacy'";
    assert!(told.message.contains(command), "{}", told.message);
    assert!(
        env.rds
            .writes()
            .iter()
            .all(|(call, _)| call == "CreateDBSnapshot")
    );
    // That of another namespace says nothing.
    let all = json!({"database.example.com/allowed-sources": "*"});
    env.annotate_namespace("billing", &all);
    assert!(adopt_legacy(&env, "first").await.is_some());
    let instance = env.rds.instance(&source.id).expect("the instance");
    let resource_id = instance["DbiResourceId"].as_str().expect("a resource ID");
    env.allow_sources(&format!("legacy-*, of-legacy-*, {resource_id}, legacy"));
    source.check(&env, true).await;
    assert_eq!(adopt_legacy(&env, "first").await, None);
    assert_eq!(env.calls("AddTagsToResource").len(), 1);
}

#[tokio::test]
async fn an_arn_allows_a_source_in_its_region_and_account_only() {
    let env = Environment::start().await;
    let source = unowned(&env).await;
    let in_region = |region: &str| {
        let of = format!("arn:aws:rds:{region}:123456789012");
        format!("{of}:db:legacy*,{of}:snapshot:of-legacy*,{of}:snapshot:legacy-*")
    };
    env.allow_sources(&in_region("us-east-1"));
    source.check(&env, false).await;
    assert!(adopt_legacy(&env, "orders").await.is_some());
    env.allow_sources(&in_region("eu-central-1"));
    source.check(&env, true).await;
    assert_eq!(adopt_legacy(&env, "orders").await, None);
}

#[tokio::test]
async fn an_adopted_instance_stays_managed_without_its_consent() {
    let env = Environment::start().await;
    unowned(&env).await;
    env.allow_sources("legacy");
    assert_eq!(adopt_legacy(&env, "orders").await, None);
    env.allow_sources("other");
    let output = env.reconcile_repeatedly("orders").await;
    assert!(output.error.is_none(), "{:?}", output.error);
    env.edit("orders", |object| {
        object["spec"]["storage"]["sizeGib"] = json!(40);
    });
    env.reconcile_repeatedly("orders").await;
    let instance = env.rds.instance("legacy").expect("the instance");
    assert_eq!(instance["AllocatedStorage"], 40);
}

#[tokio::test]
async fn data_without_an_owner_is_open_to_all_if_the_controller_says_so() {
    let mut env = Environment::start().await;
    let source = unowned(&env).await;
    env.set(|shared| shared.source_policy.unowned = UnownedSources::Allow);
    source.check(&env, true).await;
    assert_eq!(adopt_legacy(&env, "orders").await, None);
}

#[tokio::test]
async fn a_change_of_the_own_namespace_leads_to_the_next_attempt() {
    let env = Environment::start().await;
    unowned(&env).await;
    env.store("orders", &json!({"adopt": {"identifier": "legacy"}}));
    for version in [None, Some("1")] {
        let read = env.reconcile("orders").await.reads;
        let read = read.iter().find(|it| it.resource.kind == "Namespace");
        let read = read.expect("the Namespace was read");
        assert_eq!((read.name.as_str(), &read.namespace), ("shop", &None));
        assert_eq!(read.resource_version.as_deref(), version);
        env.allow_sources("other");
    }
}

#[tokio::test]
async fn data_of_another_cluster_is_read_only_if_an_administrator_lists_it() {
    for (ours, uid) in [
        (Some("blue"), Some("1")),
        (Some("blue"), None),
        (None, Some("1")),
    ] {
        let mut env = Environment::start_in_cluster(ours).await;
        // The namespace has the name of that of the object.
        let mut tags = vec![("object", "shop/orders"), ("cluster", "green")];
        tags.extend(uid.map(|uid| ("uid", uid)));
        let source = Source::create(&env, "theirs", &tags).await;
        let released = [("object", "shop/orders"), ("cluster", "green")];
        create(&env.rds, "legacy", &released, true);
        env.rds.advance(std::time::Duration::from_hours(1));
        // What the Namespace of that name shares is that of this cluster.
        env.share("shop", "*");
        env.set(|shared| shared.source_policy.unowned = UnownedSources::Allow);
        source.check(&env, false).await;
        let told = adopt_legacy(&env, "adopting").await.expect("a refusal");
        assert!(told.message.contains("cluster 'green'"), "{}", told.message);
        env.allow_sources("*");
        source.check(&env, true).await;
        assert_eq!(adopt_legacy(&env, "adopting").await, None);
    }
}

#[tokio::test]
async fn a_controller_of_some_namespaces_has_the_consent_in_its_arguments() {
    let mut env = Environment::start().await;
    let source = unowned(&env).await;
    // It may not read the annotation.
    env.allow_sources("*");
    let allow = |list: &str| SourcePolicy {
        reads_namespaces: false,
        allowed: list.parse::<NamespaceSources>().into_iter().collect(),
        ..SourcePolicy::default()
    };
    env.set(|shared| shared.source_policy = allow("billing=*"));
    source.check(&env, false).await;
    let told = adopt_legacy(&env, "orders").await.expect("a refusal");
    let argument = "run the controller with --allowed-sources=shop=legacy;";
    assert!(told.message.contains(argument), "{}", told.message);
    env.set(|shared| shared.source_policy = allow("shop=*"));
    source.check(&env, true).await;
    assert_eq!(adopt_legacy(&env, "orders").await, None);
}

#[tokio::test]
async fn a_snapshot_of_another_account_is_read_only_if_an_administrator_lists_its_arn() {
    let env = Environment::start().await;
    let shared = "arn:aws:rds:eu-central-1:210987654321:snapshot:orders-final";
    env.store("copy", &json!({"restoreFrom": {"snapshot": shared}}));
    env.allow_sources("orders-final,*-final");
    let told = Told::of(&env.reconcile("copy").await);
    assert_eq!(told.reason, "SourceNotAllowed");
    env.allow_sources(shared);
    // It may be unencrypted.
    let told = Told::of(&env.reconcile("copy").await);
    assert_eq!(told.reason, "SourceNotUsable", "{}", told.message);
    assert!(env.object("copy")["status"]["region"].is_null());
    env.edit("copy", |object| {
        object["spec"]["encryption"] = json!({"enabled": false});
    });
    let output = env.reconcile("copy").await;
    assert!(output.error.is_none(), "{:?}", output.error);
}

/// It has neither the tags of an object nor a word about encryption.
#[tokio::test]
async fn an_empty_answer_is_no_source_that_belongs_to_nobody() {
    let mut env = Environment::start().await;
    create(
        &env.rds,
        "theirs",
        &[("uid", "1"), ("object", "billing/orders")],
        true,
    );
    env.rds.advance(std::time::Duration::from_hours(1));
    env.set(|shared| shared.source_policy.unowned = UnownedSources::Allow);
    let time = json!({"sourceInstance": "theirs", "latest": true});
    for (name, fields) in [
        ("replica", json!({"replicaOf": {"identifier": "theirs"}})),
        ("restored", json!({"restoreFrom": {"pointInTime": time}})),
    ] {
        env.store(name, &fields);
        let mut reasons = Vec::new();
        // Each description of the reconciliation in turn, of which one is that of the source.
        for position in 0..3 {
            env.rds.clear_injections();
            if position > 0 {
                env.rds.inject(
                    "DescribeDBInstances",
                    Disturbance::Delay(std::time::Duration::ZERO),
                    position,
                );
            }
            env.rds
                .inject("DescribeDBInstances", Disturbance::EmptyList, 1);
            let output = env.reconcile(name).await;
            let told = Told::of(&output);
            let region = &env.object(name)["status"]["region"];
            assert!(region.is_null(), "{name}, {position}: {region}");
            reasons.push((told.reason, told.is_stalled));
        }
        assert!(
            reasons.contains(&("RdsCallFailed", false)),
            "{name}: {reasons:?}"
        );
    }
    let mut writes = env.rds.writes().into_iter();
    assert!(
        writes.all(|(call, _)| call == "CreateDBInstance"),
        "that of the source"
    );
}

/// A cluster that was restored from a backup of etcd has objects with the same UIDs.
#[tokio::test]
async fn an_object_of_another_cluster_with_the_same_uid_is_another_object() {
    let env = Environment::start_in_cluster(Some("blue")).await;
    let tags = [
        ("uid", "copy"),
        ("object", "shop/copy"),
        ("cluster", "green"),
    ];
    create(&env.rds, "theirs", &tags, true);
    env.rds.advance(std::time::Duration::from_hours(1));
    env.store("copy", &json!({"replicaOf": {"identifier": "theirs"}}));
    let told = Told::of(&env.reconcile("copy").await);
    assert_eq!(told.reason, "SourceNotAllowed", "{}", told.message);
    assert!(told.message.contains("cluster 'green'"), "{}", told.message);
    env.allow_sources("theirs");
    let output = env.reconcile("copy").await;
    assert!(output.error.is_none(), "{:?}", output.error);
}
