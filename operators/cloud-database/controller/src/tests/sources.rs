//! Sources of data that belong to objects of other namespaces.

use rds_simulator::Simulator;
use serde_json::{Value, json};

use crate::tests::environment::{Environment, Told};

/// Instance of another namespace, or of none, with its backups.
pub(super) struct Source {
    pub(super) id: String,
    /// Ways to use its data, as fields of a spec, with the operation that reads it.
    uses: Vec<(Value, &'static str)>,
}

/// Creates an instance with tags, for no object of the environment.
pub(super) fn create(rds: &Simulator, id: &str, tags: &[(&str, &str)], copies_tags: bool) {
    let tags = tags.iter();
    let tags: Vec<_> = tags
        .map(|(key, value)| json!({"Key": format!("database.example.com/{key}"), "Value": value}))
        .collect();
    rds.create_instance(json!({
        "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse", "StorageEncrypted": true, "PubliclyAccessible": false,
        "BackupRetentionPeriod": 7, "CopyTagsToSnapshot": copies_tags, "Tags": tags,
    }));
}

impl Source {
    pub(super) async fn create(env: &Environment, id: &str, tags: &[(&str, &str)]) -> Self {
        let mut uses = Vec::new();
        for copies_tags in [true, false] {
            let id = format!("{id}-{copies_tags}");
            create(&env.rds, &id, tags, copies_tags);
            env.rds.advance(std::time::Duration::from_hours(1));
            let snapshot = format!("of-{id}");
            env.take_snapshot(&id, &snapshot).await;
            let restored = json!({"restoreFrom": {"snapshot": snapshot}});
            uses.push((restored, "RestoreDBInstanceFromDBSnapshot"));
        }
        let id = format!("{id}-true");
        let instance = env.rds.instance(&id).expect("the instance");
        let resource_id = &instance["DbiResourceId"];
        for source in [
            json!({"sourceInstance": id, "latest": true}),
            json!({"sourceResourceId": resource_id, "latest": true}),
        ] {
            let restored = json!({"restoreFrom": {"pointInTime": source}});
            uses.push((restored, "RestoreDBInstanceToPointInTime"));
        }
        uses.push((
            json!({"replicaOf": {"identifier": id}}),
            "CreateDBInstanceReadReplica",
        ));
        Self { id, uses }
    }

    /// Checks for each way to use the data if an object of the namespace `shop` may.
    pub(super) async fn check(&self, env: &Environment, is_allowed: bool) {
        for (number, (fields, operation)) in self.uses.iter().enumerate() {
            let name = format!("{}-{number}-{is_allowed}", self.id);
            let about = format!("{}: {fields}", self.id);
            env.store(&name, fields);
            let mut last = None;
            for _ in 0..3 {
                last = Some(env.reconcile(&name).await);
            }
            let last = last.expect("a result");
            let calls = env.calls(operation).len();
            let id = format!("cdb-{name}");
            let instance = env.rds.instance(&id);
            if is_allowed {
                assert_eq!((calls, instance.is_some()), (1, true), "{about}: {last:?}");
                env.rds.remove_instance(&id);
            } else {
                assert_eq!((calls, instance.is_none()), (0, true), "{about}");
                let told = Told::of(&last);
                let expected = (true, "SourceNotAllowed");
                assert_eq!((told.is_stalled, told.reason), expected, "{about}");
                assert!(told.message.contains("no data is read"), "{}", told.message);
                // Nothing is recorded of an instance that was never requested.
                assert_eq!(
                    env.object(&name)["status"]["region"],
                    Value::Null,
                    "{about}"
                );
            }
        }
    }
}

#[tokio::test]
async fn data_of_another_namespace_is_read_only_if_that_allows_it() {
    let env = Environment::start().await;
    let tags = [("uid", "1"), ("object", "billing/orders")];
    let source = Source::create(&env, "billing", &tags).await;
    source.check(&env, false).await;
    env.share("billing", "reports,stock");
    source.check(&env, false).await;
    env.share("billing", "reports, shop");
    source.check(&env, true).await;
    let own = [("uid", "1"), ("object", "shop/orders")];
    let own = Source::create(&env, "own", &own).await;
    own.check(&env, true).await;
    // A namespace whose name begins with that of another one is another one.
    let other = [("uid", "1"), ("object", "shop-2/orders")];
    let other = Source::create(&env, "other", &other).await;
    other.check(&env, false).await;
    // No namespace has this name, and a path cannot contain it as it is.
    let spaced = [("uid", "1"), ("object", "shop 2/orders")];
    let spaced = Source::create(&env, "spaced", &spaced).await;
    spaced.check(&env, false).await;
    let without_name = [("uid", "1")];
    let without_name = Source::create(&env, "nameless", &without_name).await;
    without_name.check(&env, false).await;
}

#[tokio::test]
async fn a_change_of_the_namespace_leads_to_the_next_attempt() {
    let env = Environment::start().await;
    let tags = [("uid", "1"), ("object", "billing/orders")];
    create(&env.rds, "billing", &tags, true);
    env.rds.advance(std::time::Duration::from_hours(1));
    let adopt = json!({"replicaOf": {"identifier": "billing"}});
    env.store("orders", &adopt);
    let read = env.reconcile("orders").await.reads;
    let read = read.iter().find(|it| it.resource.kind == "Namespace");
    let read = read.expect("the Namespace was read");
    assert_eq!((read.name.as_str(), &read.namespace), ("billing", &None));
    assert_eq!(read.resource_version, None);
    env.share("billing", "none");
    let read = env.reconcile("orders").await.reads;
    let read = read.iter().find(|it| it.resource.kind == "Namespace");
    let version = read
        .expect("the Namespace was read")
        .resource_version
        .as_deref();
    assert_eq!(version, Some("1"));
}

#[tokio::test]
async fn an_instance_that_another_namespace_has_released_is_adopted_only_if_that_allows_it() {
    let env = Environment::start().await;
    create(&env.rds, "orders", &[("object", "billing/orders")], true);
    env.rds.advance(std::time::Duration::from_hours(1));
    env.store("orders", &json!({"adopt": {"identifier": "orders"}}));
    let told = Told::of(&env.reconcile("orders").await);
    assert_eq!((told.is_stalled, told.reason), (true, "SourceNotAllowed"));
    assert!(env.rds.writes().is_empty());
    env.share("billing", "*");
    // The location is recorded first.
    env.reconcile("orders").await;
    let output = env.reconcile("orders").await;
    assert!(output.error.is_none(), "{:?}", output.error);
    assert_eq!(env.calls("AddTagsToResource").len(), 1);
}

#[tokio::test]
async fn an_object_that_observes_an_instance_lets_none_replicate_it() {
    let env = Environment::start().await;
    let tags = [("uid", "1"), ("object", "billing/orders")];
    create(&env.rds, "billing", &tags, true);
    env.rds.advance(std::time::Duration::from_hours(1));
    let observing = json!({"adopt": {"identifier": "billing"}, "managementPolicy": "Observe"});
    env.store("observer", &observing);
    env.reconcile("observer").await;
    let resource_id = &env.object("observer")["status"]["resourceId"];
    assert!(resource_id.is_string(), "the source is known");
    env.store("copy", &json!({"replicaOf": {"name": "observer"}}));
    for _ in 0..3 {
        let told = Told::of(&env.reconcile("copy").await);
        assert_eq!((told.is_stalled, told.reason), (true, "SourceNotAllowed"));
    }
    assert!(env.calls("CreateDBInstanceReadReplica").is_empty());
    env.share("billing", "shop");
    for _ in 0..3 {
        env.reconcile("copy").await;
    }
    assert_eq!(env.calls("CreateDBInstanceReadReplica").len(), 1);
}

#[tokio::test]
async fn a_controller_of_some_namespaces_reads_data_of_no_other_one() {
    let mut env = Environment::start().await;
    let tags = [("uid", "1"), ("object", "billing/orders")];
    let source = Source::create(&env, "billing", &tags).await;
    env.share("billing", "*");
    env.set(|shared| shared.source_policy.reads_namespaces = false);
    source.check(&env, false).await;
}

#[tokio::test]
async fn a_source_that_does_not_exist_is_reported_and_nothing_is_requested() {
    let env = Environment::start().await;
    for (number, (fields, code)) in [
        (
            json!({"restoreFrom": {"snapshot": "none"}}),
            "DBSnapshotNotFound",
        ),
        (
            json!({"restoreFrom": {"pointInTime": {"sourceInstance": "none", "latest": true}}}),
            "DBInstanceNotFound",
        ),
        (
            json!({"restoreFrom": {"pointInTime": {"sourceResourceId": "db-NONE", "latest": true}}}),
            "DBInstanceAutomatedBackupNotFound",
        ),
        (
            json!({"replicaOf": {"identifier": "none"}}),
            "DBInstanceNotFound",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = number.to_string();
        env.store(&name, &fields);
        let told = Told::of(&env.reconcile(&name).await);
        assert_eq!((told.is_stalled, told.reason), (true, "RejectedByRds"));
        assert!(told.message.contains(code), "{}", told.message);
        assert!(env.rds.writes().is_empty());
    }
}

#[tokio::test]
async fn a_final_snapshot_without_tags_belongs_to_the_object_in_its_name() {
    let env = Environment::start().await;
    create(&env.rds, "cdb-9", &[("other", "tag")], true);
    env.rds.advance(std::time::Duration::from_hours(1));
    env.take_snapshot("cdb-9", "cdb-9-final").await;
    env.take_snapshot("cdb-9", "by-hand").await;
    env.rds.remove_instance("cdb-9");
    env.allow_sources("cdb-9-final,by-hand");
    for (snapshot, is_allowed) in [("cdb-9-final", false), ("by-hand", true)] {
        let name = format!("from-{snapshot}");
        env.store(&name, &json!({"restoreFrom": {"snapshot": snapshot}}));
        env.reconcile(&name).await;
        let output = env.reconcile(&name).await;
        let reason = output.error.as_ref().map(|error| error.reason());
        let expected = (!is_allowed).then_some("SourceNotAllowed");
        assert_eq!(reason, expected, "{snapshot}: {output:?}");
    }
}

#[tokio::test]
async fn a_source_whose_password_rds_manages_is_not_replicated() {
    let env = Environment::start().await;
    create(&env.rds, "legacy", &[("other", "tag")], true);
    env.rds.advance(std::time::Duration::from_hours(1));
    env.rds
        .change("legacy", json!({"ManageMasterUserPassword": true}));
    env.allow_sources("legacy");
    env.store("copy", &json!({"replicaOf": {"identifier": "legacy"}}));
    env.reconcile("copy").await;
    let told = Told::of(&env.reconcile("copy").await);
    assert_eq!((told.is_stalled, told.reason), (true, "SourceNotUsable"));
    let word = "Secrets Manager";
    assert!(told.message.contains(word), "{}", told.message);
    assert!(env.rds.writes().is_empty());
    env.rds.change(
        "legacy",
        json!({"ManageMasterUserPassword": false, "MasterUserPassword": "correct-horse"}),
    );
    env.reconcile("copy").await;
    env.reconcile("copy").await;
    assert_eq!(env.calls("CreateDBInstanceReadReplica").len(), 1);
}

#[tokio::test]
async fn a_source_that_rds_can_never_use_is_reported() {
    let env = Environment::start().await;
    create(&env.rds, "legacy", &[("other", "tag")], true);
    env.rds.advance(std::time::Duration::from_hours(1));
    env.take_snapshot("legacy", "broken").await;
    env.allow_sources("legacy,broken");
    env.rds.force_snapshot_status("broken", "failed");
    env.rds
        .change("legacy", json!({"BackupRetentionPeriod": 0}));
    for (name, fields, word) in [
        (
            "copy",
            json!({"replicaOf": {"identifier": "legacy"}}),
            "retention",
        ),
        (
            "old",
            json!({"restoreFrom": {"snapshot": "broken"}}),
            "failed",
        ),
    ] {
        env.store(name, &fields);
        env.reconcile(name).await;
        let told = Told::of(&env.reconcile(name).await);
        assert_eq!((told.is_stalled, told.reason), (true, "SourceNotUsable"));
        assert!(told.message.contains(word), "{}", told.message);
    }
    assert!(
        env.rds
            .writes()
            .iter()
            .all(|(call, _)| call == "CreateDBSnapshot")
    );
    env.rds
        .change("legacy", json!({"BackupRetentionPeriod": 7}));
    env.reconcile("copy").await;
    env.reconcile("copy").await;
    assert_eq!(env.calls("CreateDBInstanceReadReplica").len(), 1);
}
