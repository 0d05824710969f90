//! Modifications that RDS keeps refusing, that wait, or that are taken back.

use std::time::Duration;

use lockstep_controller::{OperatorCondition, ReconcileOutput};
use rds_simulator::{Disturbance, End};
use serde_json::{Value, json};

use crate::aws::recent::tests::config_at;
use crate::tests::environment::Environment;

fn synced(output: &ReconcileOutput) -> &OperatorCondition {
    &output.conditions[0]
}

fn with_size(env: &Environment, size: i32) {
    env.edit("orders", |object| {
        object["spec"]["storage"]["sizeGib"] = json!(size);
    });
}

/// Lets time pass that belongs to the records of an object, which have the time of the computer.
fn age(env: &Environment) {
    env.edit("orders", |object| {
        object["status"]["storageModifiedAt"] = json!("2020-01-01T00:00:00Z");
    });
}

#[tokio::test]
async fn a_refusal_because_of_a_status_that_the_instance_does_not_have_is_reported() {
    let mut env = Environment::start().await;
    env.set(|shared| shared.config.poll_interval = Duration::ZERO);
    env.create("orders", &json!({})).await;
    env.edit("orders", |object| {
        object["spec"]["multiAz"] = json!(true);
    });
    let busy = Disturbance::Error("InvalidDBInstanceState".to_owned(), "by a test".to_owned());
    env.rds.inject("ModifyDBInstance", busy, 100);
    let mut reasons = Vec::new();
    for _ in 0..20 {
        let output = env.reconcile_recorded("orders").await;
        let is_told = output.events.iter().any(|event| event.is_warning);
        reasons.push((synced(&output).reason, is_told));
    }
    assert_eq!(reasons[0], ("Modifying", false));
    assert_eq!(reasons[19], ("Rejected", true));
    // As soon as RDS accepts it, nothing is left of that.
    env.rds.clear_injections();
    env.reconcile_repeatedly("orders").await;
    let output = env.reconcile("orders").await;
    assert!(synced(&output).is_true, "{:?}", output.conditions);
}

#[tokio::test]
async fn a_growth_that_waits_for_the_maintenance_window_can_be_taken_back() {
    let env = Environment::start().await;
    let fields = json!({"applyChanges": "MaintenanceWindow"});
    let id = env.create("orders", &fields).await;
    with_size(&env, 100);
    env.reconcile("orders").await;
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["PendingModifiedValues"]["AllocatedStorage"], 100);
    assert_eq!(env.object("orders")["status"]["acceptedStorageGib"], 100);
    let output = env.reconcile("orders").await;
    let message = &synced(&output).message;
    assert!(message.ends_with(", without an outage"), "{message}");
    with_size(&env, 20);
    env.reconcile("orders").await;
    let output = env.reconcile("orders").await;
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["AllocatedStorage"], 20);
    let pending = &instance["PendingModifiedValues"]["AllocatedStorage"];
    assert_eq!(*pending, Value::Null, "it is cancelled");
    assert!(synced(&output).is_true, "{:?}", output.conditions);
    let calls = env.rds.calls("ModifyDBInstance").len();
    assert_eq!(calls, 2, "one for each edit");
    assert_eq!(env.object("orders")["status"]["acceptedStorageGib"], 20);
}

/// Changes that do not wait any more are requested, and the growth must not be among them.
#[tokio::test]
async fn a_growth_is_taken_back_also_if_nothing_is_to_wait_any_more() {
    let env = Environment::start().await;
    let fields = json!({"applyChanges": "MaintenanceWindow"});
    let id = env.create("orders", &fields).await;
    with_size(&env, 100);
    env.reconcile("orders").await;
    env.edit("orders", |object| {
        object["spec"]["applyChanges"] = json!("Immediately");
        object["spec"]["storage"]["sizeGib"] = json!(20);
        object["spec"]["instanceClass"] = json!("db.m7g.large");
    });
    env.reconcile_repeatedly("orders").await;
    let instance = env.rds.instance(&id).expect("the instance");
    let found = (&instance["DBInstanceClass"], &instance["AllocatedStorage"]);
    assert_eq!(found, (&json!("db.m7g.large"), &json!(20)));
}

#[tokio::test]
async fn iops_that_are_removed_from_the_spec_while_rds_sets_them_are_removed() {
    let env = Environment::start().await;
    let storage = json!({"sizeGib": 500});
    let id = env.create("orders", &json!({"storage": storage})).await;
    let set = |storage: Value| {
        env.edit("orders", |object| object["spec"]["storage"] = storage);
    };
    let iops = || env.rds.instance(&id).expect("the instance")["Iops"].clone();
    set(json!({"sizeGib": 500, "iops": 16_000}));
    env.reconcile("orders").await;
    assert_eq!(iops(), 12_000, "not yet");
    set(storage);
    env.reconcile("orders").await;
    env.rds.advance(Duration::from_hours(1));
    env.reconcile("orders").await;
    assert_eq!(iops(), 16_000);
    age(&env);
    env.reconcile_repeatedly("orders").await;
    assert_eq!(iops(), 12_000);
}

/// Otherwise the webhook would deny to take the size back for ever.
#[tokio::test]
async fn a_growth_that_somebody_cancels_in_rds_is_forgotten() {
    let env = Environment::start().await;
    let fields = json!({"applyChanges": "MaintenanceWindow"});
    let id = env.create("orders", &fields).await;
    with_size(&env, 100);
    env.reconcile("orders").await;
    let accepted = || env.object("orders")["status"]["acceptedStorageGib"].clone();
    let client = aws_sdk_rds::Client::new(&config_at(&env.rds.endpoint()).await);
    let cancellation = client.modify_db_instance().db_instance_identifier(&id);
    let cancellation = cancellation.allocated_storage(20).send().await;
    cancellation.expect("accepted");
    let instance = env.rds.instance(&id).expect("the instance");
    let pending = &instance["PendingModifiedValues"]["AllocatedStorage"];
    assert_eq!(*pending, Value::Null);
    env.reconcile("orders").await;
    assert_eq!(accepted(), 100, "RDS may report it later");
    age(&env);
    env.reconcile("orders").await;
    assert_eq!(accepted(), Value::Null);
}

#[tokio::test]
async fn what_rds_applies_with_the_cure_of_full_storage_is_told() {
    let env = Environment::start().await;
    let fields = json!({"applyChanges": "MaintenanceWindow"});
    let id = env.create("orders", &fields).await;
    env.edit("orders", |object| {
        object["spec"]["instanceClass"] = json!("db.m7g.large");
    });
    env.reconcile_recorded("orders").await;
    let instance = env.rds.instance(&id).expect("the instance");
    let pending = &instance["PendingModifiedValues"];
    assert_eq!(pending["DBInstanceClass"], "db.m7g.large");
    env.rds.force_status(&id, "storage-full", End::Released);
    with_size(&env, 40);
    let output = env.reconcile("orders").await;
    let mut events = output.events.iter();
    let early = events.find(|it| it.reason == "AppliedBeforeMaintenanceWindow");
    let early = early.expect("an Event");
    assert!(early.is_warning && early.note.contains("instanceClass"));
    env.rds.advance(Duration::from_hours(1));
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["DBInstanceClass"], "db.m7g.large");
    assert_eq!(instance["AllocatedStorage"], 40);
    let output = env.reconcile("orders").await;
    let mut events = output.events.iter();
    assert!(!events.any(|it| it.reason == "AppliedBeforeMaintenanceWindow"));
}

/// The maximum of storage autoscaling alone does not cure full storage.
#[tokio::test]
async fn full_storage_grows_although_rds_rejects_the_maximum() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    env.rds.force_status(&id, "storage-full", End::Released);
    env.edit("orders", |object| {
        object["spec"]["storage"] = json!({"sizeGib": 40, "maxSizeGib": 1_000});
    });
    let refused = || Disturbance::Error("InvalidParameterValue".to_owned(), "by a test".to_owned());
    // Both in one call, and then the maximum.
    env.rds.inject("ModifyDBInstance", refused(), 2);
    let output = env.reconcile("orders").await;
    let synced = synced(&output);
    assert_eq!(synced.reason, "Rejected");
    assert!(synced.message.contains("storage.maxSizeGib"));
    env.rds.advance(Duration::from_hours(1));
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["AllocatedStorage"], 40);
}

/// The process can end after the call and before the status is stored.
#[tokio::test]
async fn a_password_that_was_sent_before_the_process_ended_is_set_again() {
    let mut env = Environment::start().await;
    env.set_password("correct-horse", 1);
    let id = env.create("orders", &json!({})).await;
    env.reconcile("orders").await;
    env.set_password("battery-staple", 2);
    // Reconciles until the call, and loses its result.
    let mut before = env.object("orders")["status"].clone();
    for _ in 0..4 {
        env.reconcile("orders").await;
        if !env.rds.calls("ModifyDBInstance").is_empty() {
            break;
        }
        before = env.object("orders")["status"].clone();
    }
    env.edit("orders", |object| object["status"] = before);
    env.set(|_| {});
    env.rds.advance(Duration::from_hours(1));
    assert_eq!(env.rds.password(&id).as_deref(), Some("battery-staple"));
    env.set_password("correct-horse", 1);
    env.reconcile_repeatedly("orders").await;
    assert_eq!(env.rds.password(&id).as_deref(), Some("correct-horse"));
}

#[tokio::test]
async fn an_instance_without_backups_is_told_unless_its_object_decides_about_them() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    env.rds.change(&id, json!({"BackupRetentionPeriod": 0}));
    env.rds.advance(Duration::from_hours(1));
    let message = async || {
        let output = env.reconcile("orders").await;
        output.readiness.expect("a state").message
    };
    let text = "no automated backups";
    assert!(message().await.contains(text));
    env.edit("orders", |object| {
        object["spec"]["backup"] = json!({"retentionDays": 0});
    });
    assert!(!message().await.contains(text));
}

#[tokio::test]
async fn a_change_of_the_storage_is_requested_again_when_its_optimization_has_ended() {
    let env = Environment::start().await;
    env.rds
        .set_timing(|timing| timing.storage_cooldown = Duration::from_hours(1_000));
    let id = env.create("orders", &json!({})).await;
    let grow = async |size: i32| {
        env.edit("orders", |object| {
            object["spec"]["storage"]["sizeGib"] = json!(size);
        });
        env.reconcile_repeatedly("orders").await
    };
    let synced = |output: &ReconcileOutput| output.conditions[0].clone();
    assert!(synced(&grow(40).await).is_true);
    let refused = synced(&grow(60).await);
    assert_eq!(refused.reason, "StorageCooldown");
    let text = "InvalidParameterCombination: ";
    assert!(
        refused.message.contains(text),
        "the text of RDS: {}",
        refused.message
    );
    env.rds.clear_journal();
    env.reconcile("orders").await;
    assert!(env.rds.writes().is_empty(), "it is not repeated");
    env.rds
        .force_status(&id, "storage-optimization", End::Released);
    env.reconcile("orders").await;
    env.rds.release(&id);
    env.rds.advance(Duration::from_mins(1));
    for _ in 0..3 {
        env.reconcile("orders").await;
    }
    assert_eq!(env.calls("ModifyDBInstance").len(), 1, "once more");
}

#[tokio::test]
async fn the_advanced_mode_of_database_insights_is_requested_with_what_it_needs() {
    let env = Environment::start().await;
    let monitoring = |mode: &str| {
        let insights = json!({"enabled": true, "retentionDays": 465});
        json!({"monitoring": {"performanceInsights": insights, "databaseInsights": mode}})
    };
    let id = env.create("orders", &monitoring("Standard")).await;
    let mode = || {
        let instance = env.rds.instance(&id).expect("the instance");
        instance["DatabaseInsightsMode"].clone()
    };
    assert_eq!(mode(), "standard");
    for wanted in ["Advanced", "Standard"] {
        env.edit("orders", |object| {
            object["spec"]["monitoring"] = monitoring(wanted)["monitoring"].take();
        });
        env.reconcile_repeatedly("orders").await;
        assert_eq!(mode(), wanted.to_lowercase());
    }
}

#[tokio::test]
async fn storage_autoscaling_is_switched_off_only_if_the_spec_has_switched_it_on() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    let maximum = || {
        let instance = env.rds.instance(&id).expect("the instance");
        instance["MaxAllocatedStorage"].clone()
    };
    env.rds.change(&id, json!({"MaxAllocatedStorage": 300}));
    env.reconcile_repeatedly("orders").await;
    assert_eq!(maximum(), 300, "another client has switched it on");
    let set = |value: Value| {
        env.edit("orders", |object| {
            object["spec"]["storage"] = json!({"sizeGib": 20, "maxSizeGib": value});
        });
    };
    set(json!(400));
    env.reconcile("orders").await;
    assert_eq!(maximum(), 400);
    set(Value::Null);
    env.reconcile_repeatedly("orders").await;
    assert_eq!(maximum(), Value::Null);
    // Also if it is removed before the instance was compared with the spec.
    let fields = json!({"storage": {"sizeGib": 20, "maxSizeGib": 400}});
    env.store("billing", &fields);
    while env.rds.calls("CreateDBInstance").len() < 2 {
        env.reconcile("billing").await;
    }
    env.edit("billing", |object| {
        object["spec"]["storage"] = json!({"sizeGib": 20});
    });
    env.reconcile_repeatedly("billing").await;
    let billing = env.rds.instance("cdb-billing").expect("the instance");
    assert_eq!(billing["MaxAllocatedStorage"], Value::Null);
}

#[tokio::test]
async fn an_upgrade_that_the_spec_does_not_allow_is_a_difference_while_it_is_observed() {
    let env = Environment::start().await;
    env.create("orders", &json!({})).await;
    env.edit("orders", |object| {
        object["spec"]["managementPolicy"] = json!("Observe");
        object["spec"]["engineVersion"] = json!("17");
    });
    let output = env.reconcile("orders").await;
    let synced = synced(&output);
    assert_eq!(
        (synced.is_true, synced.reason),
        (false, "ObservedDifferent")
    );
    assert!(synced.message.contains("17"), "{}", synced.message);
}

#[tokio::test]
async fn backups_that_a_plan_of_aws_backup_owns_are_told_and_not_requested() {
    let env = Environment::start().await;
    let backup = json!({"retentionDays": 7, "window": "02:00-03:00"});
    let maintenance = json!("sun:05:00-sun:06:00");
    let fields = json!({"backup": backup, "maintenanceWindow": maintenance});
    let id = env.create("orders", &fields).await;
    let recovery_point =
        "arn:aws:backup:eu-central-1:123456789012:recovery-point:continuous:db-orders";
    env.rds.report(
        &id,
        json!({
            "AwsBackupRecoveryPointArn": recovery_point,
            "BackupRetentionPeriod": 8,
            "PreferredBackupWindow": "04:00-04:30",
        }),
    );
    for parameter in ["BackupRetentionPeriod", "PreferredBackupWindow"] {
        let text = format!(
            "Your RDS instance is associated with an AWS Backup resource. You can leave {parameter} blank"
        );
        let code = "InvalidParameterValue";
        env.rds.refuse("ModifyDBInstance", parameter, code, &text);
    }
    env.rds.clear_journal();
    let output = env.reconcile_repeatedly("orders").await;
    assert!(env.calls("ModifyDBInstance").is_empty());
    let synced = &output.conditions[0];
    assert_eq!((synced.is_true, synced.reason), (false, "Different"));
    for text in [
        recovery_point,
        "8 days",
        "backup.retentionDays, backup.window",
    ] {
        assert!(synced.message.contains(text), "{}", synced.message);
    }
    // Other settings are changed nevertheless, and values of the plan are no difference.
    env.edit("orders", |object| {
        object["spec"]["backup"] = json!({"retentionDays": 8, "copyTagsToSnapshot": false});
    });
    let output = env.reconcile_repeatedly("orders").await;
    assert!(output.conditions[0].is_true, "{output:?}");
    assert_eq!(env.calls("ModifyDBInstance").len(), 1);
}
