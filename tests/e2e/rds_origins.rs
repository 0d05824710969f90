//! Instances that are restored or that replicate others, and requested reconciliations, on a simulator of RDS.

use lockstep_envtest::{eventually, stays};
use rds_simulator::{Disturbance, Simulator};
use serde_json::{Value, json};
use std::time::Duration;

use crate::env::{TestEnv, condition, database};

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden call.
const WHILE: Duration = Duration::from_secs(2);

struct Origins<'a> {
    env: &'a TestEnv,
    rds: &'a Simulator,
}

impl Origins<'_> {
    /// Creates an object with fields of its own, and returns the identifier of its instance.
    async fn create(&self, name: &str, fields: &Value) -> String {
        let mut object = database(name);
        for (field, value) in fields.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        self.env
            .kubectl_apply(&object)
            .unwrap_or_else(|error| self.env.fail(&error));
        self.env.condition(name, "Ready", "True").await;
        self.env.condition(name, "Synced", "True").await;
        let stored = self.env.databases().get(name).await.expect("the object");
        format!("cdb-{}", stored.metadata.uid.expect("a UID"))
    }

    fn patch(&self, name: &str, patch: &Value) {
        let target = format!("cdb/{name}");
        self.env
            .kubectl(&[
                "patch",
                &target,
                "--type=merge",
                "--patch",
                &patch.to_string(),
            ])
            .unwrap_or_else(|error| self.env.fail(&error));
    }

    async fn status(&self, name: &str) -> Value {
        let object = self.env.databases().get(name).await.expect("the object");
        object.data["status"].clone()
    }

    fn instance(&self, id: &str) -> Value {
        self.rds.instance(id).expect("the instance")
    }

    fn calls(&self, operation: &str) -> usize {
        self.rds.calls(operation).len()
    }

    /// Waits until something is true.
    async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let found = eventually(what, async || is_so().await.then_some(()));
        found
            .await
            .unwrap_or_else(|error| self.env.fail(&error.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_restored_and_replicated_once_and_promoted_when_the_spec_says_so() {
    let (env, rds) = TestEnv::start_on_simulator().await;
    let origins = Origins {
        env: &env,
        rds: &rds,
    };
    let password = "battery-staple";
    env.make_secret("other", &json!({"username": "app", "password": password}))
        .await;
    let credentials = json!({"username": "app", "secretName": "other"});
    let orders = origins.create("orders", &json!({})).await;
    origins
        .until("a backup", async || {
            origins.instance(&orders)["LatestRestorableTime"].is_string()
        })
        .await;
    let snapshot = env.rds.create_db_snapshot().db_instance_identifier(&orders);
    let snapshot = snapshot.db_snapshot_identifier("before").send().await;
    snapshot.expect("a snapshot");
    origins
        .until("the snapshot", async || {
            rds.snapshots()
                .iter()
                .any(|it| it["DBSnapshotIdentifier"] == "before" && it["Status"] == "available")
        })
        .await;

    // What the call does not take is modified afterwards. A lost answer leads to no second instance.
    rds.inject(
        "RestoreDBInstanceFromDBSnapshot",
        Disturbance::LostAnswer,
        1,
    );
    let fields = json!({
        "restoreFrom": {"snapshot": "before"}, "storage": {"sizeGib": 150},
        "backup": {"retentionDays": 3}, "maintenanceWindow": "sun:05:00-sun:06:00",
        "credentials": credentials, "tags": {"team": "shop"},
        "network": {"availabilityZone": "eu-central-1b"},
    });
    let restored = origins.create("restored", &fields).await;
    origins
        .until("the modifications", async || {
            rds.password(&restored).as_deref() == Some(password)
                && origins.instance(&restored)["AllocatedStorage"] == 150
        })
        .await;
    let instance = origins.instance(&restored);
    assert_eq!(instance["BackupRetentionPeriod"], 3);
    assert_eq!(instance["AvailabilityZone"], "eu-central-1b");
    assert_eq!(
        instance["PreferredMaintenanceWindow"],
        "sun:05:00-sun:06:00"
    );
    let tags = instance["TagList"].as_array().expect("tags");
    let owner = json!({"Key": "database.example.com/object", "Value": "default/restored"});
    assert!(tags.contains(&owner), "{tags:?}");

    rds.inject("RestoreDBInstanceToPointInTime", Disturbance::LostAnswer, 1);
    let source = json!({"pointInTime": {"sourceInstance": orders, "latest": true}});
    let of_backup = json!({"restoreFrom": source, "credentials": credentials});
    let earlier = origins.create("earlier", &of_backup).await;
    origins
        .until("the password", async || {
            rds.password(&earlier).as_deref() == Some(password)
        })
        .await;

    // A replica waits for its source, and has the password of it until it is promoted.
    rds.inject("CreateDBInstanceReadReplica", Disturbance::LostAnswer, 1);
    let fields = json!({"replicaOf": {"name": "orders"}, "credentials": credentials});
    let reader = origins.create("reader", &fields).await;
    let source = |id: &str| origins.instance(id)["ReadReplicaSourceDBInstanceIdentifier"].clone();
    assert_eq!(source(&reader), json!(orders));
    assert_eq!(origins.status("reader").await["replicaOf"], json!(orders));
    assert_eq!(rds.password(&reader).as_deref(), Some("correct-horse"));
    assert_eq!(origins.calls("PromoteReadReplica"), 0);
    origins.patch("reader", &json!({"spec": {"replicaOf": null}}));
    origins
        .until("the promotion", async || {
            source(&reader).is_null() && rds.password(&reader).as_deref() == Some(password)
        })
        .await;
    env.condition("reader", "Synced", "True").await;
    assert_eq!(origins.status("reader").await["replicaOf"], Value::Null);
    assert_eq!(origins.instance(&reader)["BackupRetentionPeriod"], 7);

    is_restored_once(&origins, &of_backup).await;
    assert_eq!(origins.calls("CreateDBInstance"), 1, "that of the source");
    assert_eq!(rds.instance_ids().len(), 4);
    reconciliation_on_request(&origins, &orders).await;
    a_refused_size_is_taken_back(&origins, &orders).await;
    data_of_another_namespace(&origins).await;
}

/// A size that RDS refuses can be taken back, and one that it has allocated cannot.
async fn a_refused_size_is_taken_back(origins: &Origins<'_>, orders: &str) {
    let (env, rds) = (origins.env, origins.rds);
    let code = "StorageQuotaExceeded";
    rds.refuse("ModifyDBInstance", "AllocatedStorage", code, "too much");
    let before = origins.instance(orders)["AllocatedStorage"].clone();
    let resize =
        |size: &Value| origins.patch("orders", &json!({"spec": {"storage": {"sizeGib": size}}}));
    resize(&json!(1000));
    env.condition_because("orders", "Synced", "Rejected").await;
    resize(&before);
    env.condition("orders", "Synced", "True").await;
    rds.clear_injections();
    let smaller = json!({"spec": {"storage": {"sizeGib": 20}}}).to_string();
    let denied = env
        .kubectl(&["patch", "cdb/orders", "--type=merge", "--patch", &smaller])
        .expect_err("the smaller size is denied");
    assert!(denied.contains("must not be decreased"), "{denied}");
}

/// The data of an object in another namespace is read only once that namespace allows it.
async fn data_of_another_namespace(origins: &Origins<'_>) {
    let (env, rds) = (origins.env, origins.rds);
    rds.create_instance(json!({
        "DBInstanceIdentifier": "invoices", "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 100, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse",
        "StorageEncrypted": true, "BackupRetentionPeriod": 7,
        "Tags": [
            {"Key": "database.example.com/uid", "Value": "1"},
            {"Key": "database.example.com/object", "Value": "billing/invoices"},
        ],
    }));
    origins
        .until("a backup", async || {
            origins.instance("invoices")["LatestRestorableTime"].is_string()
        })
        .await;
    let calls = origins.calls("RestoreDBInstanceToPointInTime");
    let source = json!({"sourceInstance": "invoices", "latest": true});
    let mut copy = database("copy");
    copy["spec"]["restoreFrom"] = json!({"pointInTime": source});
    env.kubectl_apply(&copy)
        .unwrap_or_else(|error| env.fail(&error));
    let stalled = env
        .condition_because("copy", "Stalled", "SourceNotAllowed")
        .await;
    assert!(stalled.message.contains("'billing'"), "{}", stalled.message);
    env.warned("copy", "SourceNotAllowed").await;
    let kubectl = |args: &[&str]| env.kubectl(args).unwrap_or_else(|error| env.fail(&error));
    kubectl(&["create", "namespace", "billing"]);
    stays(WHILE, "the calls", async || {
        origins.calls("RestoreDBInstanceToPointInTime")
    })
    .await;
    assert_eq!(origins.calls("RestoreDBInstanceToPointInTime"), calls);
    let allowed = "database.example.com/shared-with=default";
    kubectl(&["annotate", "namespace", "billing", allowed]);
    env.condition("copy", "Ready", "True").await;
    assert_eq!(origins.calls("RestoreDBInstanceToPointInTime"), calls + 1);
}

/// The same manifest, applied again, does not restore the backup beside the instance of the earlier object.
async fn is_restored_once(origins: &Origins<'_>, fields: &Value) {
    let env = origins.env;
    let calls = origins.calls("RestoreDBInstanceToPointInTime");
    origins.patch("earlier", &json!({"spec": {"deletionPolicy": "Retain"}}));
    env.kubectl(&["delete", "cdb/earlier", "--timeout=60s"])
        .unwrap_or_else(|error| env.fail(&error));
    let mut object = database("earlier");
    for (field, value) in fields.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    env.condition_because("earlier", "Ready", "InstanceOfEarlierObject")
        .await;
    assert_eq!(origins.calls("RestoreDBInstanceToPointInTime"), calls);
}

/// A modification that RDS has rejected is requested again after an hour, or when a user requests it.
async fn reconciliation_on_request(origins: &Origins<'_>, orders: &str) {
    let (env, rds) = (origins.env, origins.rds);
    let code = "InvalidParameterValue";
    rds.refuse("ModifyDBInstance", "DBInstanceClass", code, "not today");
    let class = "db.m7g.large";
    origins.patch("orders", &json!({"spec": {"instanceClass": class}}));
    env.condition_because("orders", "Synced", "Rejected").await;
    rds.clear_injections();
    stays(WHILE, "the class", async || {
        origins.instance(orders)["DBInstanceClass"].clone()
    })
    .await;

    let annotations = json!({"lockstep.dev/reconcile-requested-at": "first"});
    origins.patch("orders", &json!({"metadata": {"annotations": annotations}}));
    origins
        .until("the class", async || {
            origins.instance(orders)["DBInstanceClass"] == class
        })
        .await;
    origins
        .until("the handled request", async || {
            origins.status("orders").await["lastHandledReconcileAt"] == "first"
        })
        .await;
    env.condition("orders", "Synced", "True").await;
    let object = env.databases().get("orders").await.expect("the object");
    assert!(condition(&object, "Stalled").is_none());
}
