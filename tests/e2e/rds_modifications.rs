//! Modifications of instances, on a simulator of RDS: one that RDS rejects keeps no other from being applied, and the
//! conditions tell clients from the spec.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use lockstep_envtest::{eventually, stays};
use rds_simulator::{Disturbance, End, JournalEntry, Outcome, Simulator};
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, condition, database};

/// Long enough for the test's controller, which polls RDS every 300 ms, to make a forbidden call.
const WHILE: Duration = Duration::from_secs(2);

/// Database that is created on a simulator, and what identifies it there.
struct Orders<'a> {
    env: &'a TestEnv,
    rds: &'a Simulator,
    name: &'static str,
    id: String,
}

impl<'a> Orders<'a> {
    async fn create(
        env: &'a TestEnv,
        rds: &'a Simulator,
        name: &'static str,
        spec: &Value,
    ) -> Self {
        let mut object = database(name);
        let fields = spec.as_object().into_iter().flatten();
        for (field, value) in fields {
            object["spec"][field] = value.clone();
        }
        env.kubectl_apply(&object)
            .unwrap_or_else(|error| env.fail(&error));
        env.condition(name, "Ready", "True").await;
        env.condition(name, "Synced", "True").await;
        let stored = env.databases().get(name).await.expect("the object");
        let uid = stored.metadata.uid.expect("a UID");
        Self {
            env,
            rds,
            name,
            id: format!("cdb-{uid}"),
        }
    }

    /// Changes the spec.
    fn patch(&self, spec: &Value) {
        let patch = json!({"spec": spec}).to_string();
        let target = format!("cdb/{}", self.name);
        self.env
            .kubectl(&["patch", &target, "--type=merge", "--patch", &patch])
            .unwrap_or_else(|error| self.env.fail(&error));
    }

    fn instance(&self) -> Value {
        self.rds.instance(&self.id).expect("the instance")
    }

    /// Waits until the instance has these members.
    async fn has(&self, members: Value) {
        let what = format!("an instance with {members}");
        let found = eventually(&what, async || {
            let instance = self.instance();
            let mut members = members.as_object().expect("members").iter();
            members
                .all(|(name, value)| instance[name] == *value)
                .then_some(())
        });
        found.await.unwrap_or_else(|error| {
            self.env.fail(&format!(
                "{error}\n{}\n{:#?}",
                self.instance(),
                self.modifications()
            ))
        });
    }

    /// Returns the parameters of the accepted modifications.
    fn modifications(&self) -> Vec<Value> {
        let calls = self.rds.calls("ModifyDBInstance").into_iter();
        calls
            .filter(|it| it.parameters["DBInstanceIdentifier"] == self.id.as_str())
            .filter(|it| it.outcome == Outcome::Succeeded)
            .map(|it| it.parameters)
            .collect()
    }

    async fn status(&self) -> Value {
        let object = self.env.databases().get(self.name).await;
        object.expect("the object").data["status"].clone()
    }

    /// Waits until the condition `Synced` has this reason, and returns its message.
    async fn synced_because(&self, reason: &str) -> String {
        let found = self
            .env
            .condition_because(self.name, "Synced", reason)
            .await;
        found.message
    }
}

async fn start() -> (TestEnv, Simulator) {
    start_with(&[]).await
}

async fn start_with(controller_args: &[&str]) -> (TestEnv, Simulator) {
    let args = controller_args.iter();
    let options = EnvOptions {
        controller_args: args.map(|it| (*it).to_owned()).collect(),
        ..EnvOptions::default()
    };
    TestEnv::start_on_simulator_with(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_rds_rejects_keeps_no_other_from_being_applied() {
    let (env, rds) = start().await;
    let orders = Orders::create(&env, &rds, "orders", &json!({})).await;

    // The class is rejected; port, backups and storage are applied nevertheless.
    let text = "RDS does not support this class here";
    rds.refuse(
        "ModifyDBInstance",
        "DBInstanceClass",
        "InvalidParameterCombination",
        text,
    );
    orders.patch(&json!({
        "instanceClass": "db.m7g.large", "port": 5433, "backup": {"retentionDays": 3},
        "storage": {"sizeGib": 200},
    }));
    orders
        .has(json!({"BackupRetentionPeriod": 3, "AllocatedStorage": 200}))
        .await;
    let message = orders.synced_because("Rejected").await;
    assert!(
        message.contains("instanceClass") && message.contains(text),
        "{message}"
    );
    assert!(env.condition("orders", "Ready", "True").await.reason == "Available");
    env.warned("orders", text).await;
    // It is not requested again and again.
    let rejected = || {
        let calls = rds.calls("ModifyDBInstance");
        let is_rejected = |it: &JournalEntry| matches!(it.outcome, Outcome::Failed(_));
        calls.iter().filter(|it| is_rejected(it)).count()
    };
    let before = rejected();
    stays(WHILE, "whether it was requested again", async || {
        rejected() > before
    })
    .await;
    rds.clear_injections();
    orders.patch(&json!({"instanceClass": "db.m7g.xlarge"}));
    orders
        .has(json!({"DBInstanceClass": "db.m7g.xlarge"}))
        .await;

    // The storage was changed a short time ago.
    env.condition("orders", "Synced", "True").await;
    orders.patch(&json!({"storage": {"sizeGib": 300}}));
    let message = orders.synced_because("StorageCooldown").await;
    assert!(
        message.contains("storage.sizeGib") && message.contains("minutes"),
        "{message}"
    );
    env.condition("orders", "Ready", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_changed_as_rds_wants_it_and_only_that_cures_full_storage() {
    let (env, rds) = start().await;
    rds.set_timing(|timing| timing.storage_cooldown = Duration::ZERO);
    let orders = Orders::create(&env, &rds, "orders", &json!({})).await;

    // Past the threshold of gp3, and the maximum is removed in the same edit.
    orders.patch(&json!({"storage": {"maxSizeGib": 300}}));
    orders.has(json!({"MaxAllocatedStorage": 300})).await;
    orders.patch(&json!({"storage": {"sizeGib": 500, "maxSizeGib": null}}));
    orders
        .has(json!({"AllocatedStorage": 500, "Iops": 12_000}))
        .await;
    env.condition("orders", "Synced", "True").await;
    // IOPS alone, and their removal.
    orders.patch(&json!({"storage": {"iops": 16_000}}));
    orders.has(json!({"Iops": 16_000})).await;
    env.condition("orders", "Synced", "True").await;
    orders.patch(&json!({"storage": {"iops": null}}));
    orders.has(json!({"Iops": 12_000})).await;
    env.condition("orders", "Synced", "True").await;
    // Another type.
    orders.patch(&json!({"storage": {"type": "io1", "iops": 5_000}}));
    orders
        .has(json!({"StorageType": "io1", "Iops": 5_000}))
        .await;
    env.condition("orders", "Synced", "True").await;

    rds.force_status(
        &orders.id,
        "storage-full",
        End::Call("ModifyDBInstance".to_owned()),
    );
    let full = env
        .condition_because("orders", "Stalled", "StorageFull")
        .await;
    assert!(
        full.message.contains("spec.storage.sizeGib"),
        "{}",
        full.message
    );
    rds.clear_journal();
    orders.patch(&json!({"storage": {"sizeGib": 600}, "instanceClass": "db.m7g.large"}));
    orders.has(json!({"AllocatedStorage": 600})).await;
    let first = orders.modifications().into_iter().next();
    let first = first.expect("a modification");
    assert!(
        first["AllocatedStorage"] == 600 && first["DBInstanceClass"].is_null(),
        "{first}"
    );
    orders.has(json!({"DBInstanceClass": "db.m7g.large"})).await;
    env.condition("orders", "Ready", "True").await;
    env.condition("orders", "Synced", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_wait_for_the_maintenance_window_if_the_spec_demands_it() {
    let (env, rds) = start().await;
    let in_window =
        json!({"applyChanges": "MaintenanceWindow", "maintenanceWindow": "sun:05:00-sun:06:00"});
    let orders = Orders::create(&env, &rds, "orders", &in_window).await;

    orders.patch(&json!({"instanceClass": "db.m7g.large", "backup": {"retentionDays": 3}}));
    orders.has(json!({"BackupRetentionPeriod": 3})).await;
    let message = orders.synced_because("Pending").await;
    assert!(
        message.contains("instanceClass") && message.contains("sun:05:00"),
        "{message}"
    );
    let status = orders.status().await;
    assert_eq!(status["pendingModifications"], json!(["instanceClass"]));
    let window = &status["pendingModificationsWindow"];
    assert_eq!(window, "sun:05:00-sun:06:00");
    assert_eq!(orders.instance()["DBInstanceClass"], "db.t4g.micro");
    let modifications = orders.modifications();
    let is_immediate =
        |it: &Value| it["ApplyImmediately"] == true || it["ApplyImmediately"] == "true";
    assert!(!modifications.iter().any(is_immediate), "{modifications:?}");
    rds.open_maintenance_window(&orders.id);
    orders.has(json!({"DBInstanceClass": "db.m7g.large"})).await;
    env.condition("orders", "Synced", "True").await;

    // What waits can be taken back, also an upgrade. One to another major version waits for consent before.
    orders.patch(&json!({"engineVersion": "17"}));
    let message = orders.synced_because("UpgradeNotAllowed").await;
    assert!(
        message.contains("set `spec.allowMajorVersionUpgrade` to '17'"),
        "{message}"
    );
    let is_upgrade = |it: &Value| !it["EngineVersion"].is_null();
    assert!(!orders.modifications().iter().any(is_upgrade));
    orders.patch(&json!({"allowMajorVersionUpgrade": "17"}));
    orders.synced_because("Pending").await;
    let upgrade = orders.modifications().into_iter().find(is_upgrade);
    let upgrade = upgrade.expect("an upgrade");
    assert_eq!(upgrade["AllowMajorVersionUpgrade"], true, "{upgrade}");
    orders.patch(&json!({"allowMajorVersionUpgrade": null}));
    env.condition_because("orders", "Synced", "UpgradeNotAllowed")
        .await;
    orders.has(json!({"PendingModifiedValues": {}})).await;
    orders.patch(&json!({"engineVersion": "16.9"}));
    env.condition("orders", "Synced", "True").await;
    rds.open_maintenance_window(&orders.id);
    env.condition("orders", "Synced", "True").await;
    assert_eq!(orders.instance()["EngineVersion"], "16.9");

    // What waits is applied at once if the spec demands that now.
    orders.patch(&json!({"instanceClass": "db.m7g.xlarge"}));
    orders.synced_because("Pending").await;
    orders.patch(&json!({"applyChanges": "Immediately"}));
    orders
        .has(json!({"DBInstanceClass": "db.m7g.xlarge"}))
        .await;
    env.condition("orders", "Synced", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_rds_takes_back_is_told_and_not_requested_again() {
    let (mut env, rds) = start().await;
    let id = {
        let exact = json!({"engineVersion": "16.4"});
        let orders = Orders::create(&env, &rds, "orders", &exact).await;
        rds.set_timing(|timing| timing.state = Duration::from_secs(1));
        rds.roll_back(&orders.id, &["EngineVersion"]);
        orders.patch(&json!({"engineVersion": "16.9"}));
        let message = orders.synced_because("UpgradeFailed").await;
        assert!(message.contains("16.9"), "{message}");
        env.condition("orders", "Ready", "True").await;
        env.condition_because("orders", "Stalled", "UpgradeFailed")
            .await;
        env.has_event("reason=UpgradeFailed", "16.9").await;
        orders.id
    };
    let upgrades = || {
        let calls = rds.calls("ModifyDBInstance").into_iter();
        calls
            .filter(|it| !it.parameters["EngineVersion"].is_null())
            .count()
    };
    assert_eq!(upgrades(), 1);
    env.installation.controller().kill();
    env.installation.start_controller().expect("a controller");
    let before = rds.calls("DescribeDBInstances").len();
    let asked = eventually("descriptions after the restart", async || {
        (rds.calls("DescribeDBInstances").len() > before + 5).then_some(())
    });
    asked
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(upgrades(), 1, "each attempt is an outage");
    env.condition_because("orders", "Stalled", "UpgradeFailed")
        .await;

    // The user requests it once the cause is gone.
    rds.roll_back(&id, &[]);
    let annotation = "lockstep.dev/reconcile-requested-at=now";
    env.kubectl(&["annotate", "cdb/orders", annotation])
        .unwrap_or_else(|error| env.fail(&error));
    env.condition("orders", "Synced", "True").await;
    assert_eq!(upgrades(), 2);
    let stored = env.databases().get("orders").await.expect("the object");
    assert_eq!(stored.data["status"]["engineVersion"], "16.9");
    assert!(condition(&stored, "Stalled").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_is_kept_unless_the_spec_says_otherwise() {
    let (env, rds) = start().await;
    let tagged = json!({"tags": {"team": "shop", "stage": "prod"}});
    let orders = Orders::create(&env, &rds, "orders", &tagged).await;

    // The console makes the instance safer. The spec leaves these fields open.
    rds.clear_journal();
    let safer = json!({"DeletionProtection": true, "BackupRetentionPeriod": 35, "MultiAZ": true});
    rds.change(&orders.id, safer.clone());
    let is_changed = async || !rds.calls("ModifyDBInstance").is_empty();
    stays(WHILE, "whether it was undone", is_changed).await;
    env.condition("orders", "Synced", "True").await;
    orders.patch(&json!({"deletionProtection": false, "backup": {"retentionDays": 5}}));
    orders
        .has(json!({"DeletionProtection": false, "BackupRetentionPeriod": 5, "MultiAZ": true}))
        .await;
    env.has_event("reason=ModificationRequested", "deletionProtection")
        .await;
    let change = &orders.status().await["lastChange"];
    let fields = change["fields"].as_array().expect("fields");
    assert!(fields.contains(&json!("backup.retentionDays")), "{change}");
    let time = change["time"].as_str().expect("a time");
    time.parse::<Timestamp>().expect("a time");

    // Tags that the spec had before are removed, and those of others are kept.
    let tags = || {
        let tags = orders.instance()["TagList"].as_array().cloned();
        let keys = tags.into_iter().flatten();
        let mut keys: Vec<_> = keys
            .filter_map(|tag| Some(tag["Key"].as_str()?.to_owned()))
            .filter(|key| !key.starts_with("database.example.com/"))
            .collect();
        keys.sort();
        keys
    };
    let client = crate::env::rds(&rds.endpoint(), "eu-central-1").await;
    let cost = aws_sdk_rds::types::Tag::builder()
        .key("cost")
        .value("1")
        .build();
    let arn = orders.instance()["DBInstanceArn"]
        .as_str()
        .map(String::from);
    let added = client
        .add_tags_to_resource()
        .set_resource_name(arn)
        .tags(cost);
    added.send().await.expect("tagged");
    orders.patch(&json!({"tags": {"stage": null}}));
    let removed = eventually("the removal of the tag", async || {
        (tags() == ["cost", "team"]).then_some(())
    });
    removed
        .await
        .unwrap_or_else(|error| env.fail(&format!("{error} {:?}", tags())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_reaches_rds_and_is_set_once() {
    // Only a watch can report a change of the Secret in time.
    let (env, rds) = start_with(&["--rds-resync-period=10m"]).await;
    let mut object = database("orders");
    object["spec"]["credentials"]["secretName"] = json!("later");
    env.kubectl_apply(&object)
        .unwrap_or_else(|error| env.fail(&error));
    // A Secret that appears is seen without a poll.
    env.condition_because("orders", "Ready", "SecretNotFound")
        .await;
    let secret = |password: &str| json!({"username": "app", "password": password});
    env.make_secret("later", &secret("correct-horse")).await;
    env.condition("orders", "Ready", "True").await;
    env.condition("orders", "Synced", "True").await;
    let uid = env.databases().get("orders").await.expect("the object");
    let id = format!("cdb-{}", uid.metadata.uid.expect("a UID"));
    assert_eq!(rds.password(&id).as_deref(), Some("correct-horse"));

    rds.clear_journal();
    let update = |password: &str| {
        let patch = json!({"stringData": {"password": password}}).to_string();
        env.kubectl(&["patch", "secret/later", "--patch", &patch])
            .unwrap_or_else(|error| env.fail(&error));
    };
    update("battery-staple");
    let set = eventually("the new password", async || {
        (rds.password(&id).as_deref() == Some("battery-staple")).then_some(())
    });
    set.await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.condition("orders", "Synced", "True").await;
    // A Secret with the same password is another version, and no other password.
    env.kubectl(&["label", "secret/later", "team=shop"])
        .unwrap_or_else(|error| env.fail(&error));
    let calls = async || rds.calls("ModifyDBInstance").len() > 1;
    stays(WHILE, "whether the password was set again", calls).await;
    let status = env.databases().get("orders").await.expect("the object");
    let status = status.data["status"].to_string();
    assert!(
        !status.contains("battery") && !status.contains("correct"),
        "{status}"
    );

    // An instance that was restored from an earlier snapshot has the password of that time.
    rds.report(&id, json!({"DbiResourceId": "db-RESTORED"}));
    rds.clear_journal();
    let restored = eventually("the password of the restored instance", async || {
        let calls = rds.calls("ModifyDBInstance");
        calls
            .iter()
            .any(|it| !it.parameters["MasterUserPassword"].is_null())
            .then_some(())
    });
    reconcile_now(&env, "orders");
    restored
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.condition("orders", "Synced", "True").await;

    // A password that RDS would reject is no password, and the database still serves its clients.
    update("too short");
    let synced = env.condition("orders", "Synced", "False").await;
    assert!(synced.message.contains("password"), "{}", synced.message);
    env.condition("orders", "Ready", "True").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_stays_ready_while_rds_does_not_answer() {
    let (env, rds) = start().await;
    let orders = Orders::create(&env, &rds, "orders", &json!({})).await;
    let failures = [
        Disturbance::throttling(),
        Disturbance::unavailable(),
        Disturbance::internal_failure(),
        Disturbance::LostAnswer,
        Disturbance::LostRequest,
    ];
    for failure in failures {
        let before = rds.calls("DescribeDBInstances").len();
        rds.inject("DescribeDBInstances", failure, 6);
        let is_unready = async || {
            let object = env.databases().get("orders").await.expect("the object");
            condition(&object, "Ready").is_none_or(|it| it.status != "True")
        };
        stays(WHILE, "whether it is not ready", is_unready).await;
        rds.clear_injections();
        let asked = eventually("calls that fail and one that does not", async || {
            (rds.calls("DescribeDBInstances").len() > before + 2).then_some(())
        });
        asked
            .await
            .unwrap_or_else(|error| env.fail(&error.to_string()));
    }
    assert_eq!(orders.status().await["phase"], "available");
}

/// Triggers a reconciliation.
fn reconcile_now(env: &TestEnv, name: &str) {
    let target = format!("cdb/{name}");
    env.kubectl(&[
        "patch",
        &target,
        "--type=merge",
        "--patch",
        r#"{"spec":{"backup":{"retentionDays":9}}}"#,
    ])
    .unwrap_or_else(|error| env.fail(&error));
}
