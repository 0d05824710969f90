//! Changes that RDS accepts, tries, and takes back: each attempt interrupts the database, so it is made once.

use std::time::Duration;

use lockstep_controller::ReconcileOutput;
use serde_json::{Value, json};

use crate::tests::environment::Environment;

const LONG: Duration = Duration::from_hours(1);

/// Changes with their fields in the spec and the setting in RDS.
fn changes() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({"engineVersion": "17", "allowMajorVersionUpgrade": "17"}),
            "EngineVersion",
        ),
        (json!({"engineVersion": "16.9"}), "EngineVersion"),
        (json!({"instanceClass": "db.m7g.large"}), "DBInstanceClass"),
        (json!({"multiAz": true}), "MultiAZ"),
        (json!({"optionGroup": "audited"}), "OptionGroupName"),
        (
            json!({"caCertificate": "rds-ca-rsa4096-g1"}),
            "CACertificateIdentifier",
        ),
    ]
}

async fn start() -> Environment {
    let mut env = Environment::start().await;
    restart(&mut env);
    env.rds.add_option_group("audited");
    env
}

/// Creates an instance with a version that can be upgraded.
async fn create(env: &Environment) -> String {
    env.create("orders", &json!({"engineVersion": "16.4"}))
        .await
}

/// Restarts the controller, which has forgotten everything. It polls without a pause.
fn restart(env: &mut Environment) {
    env.set(|shared| shared.config.poll_interval = Duration::ZERO);
}

fn set(env: &Environment, fields: &Value) {
    env.edit("orders", |object| {
        for (field, value) in fields.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
    });
}

/// Reconciles until RDS has accepted the change, shown it, and taken it back.
async fn attempt(env: &Environment) -> ReconcileOutput {
    env.reconcile("orders").await;
    env.reconcile("orders").await;
    env.rds.advance(LONG);
    env.reconcile("orders").await;
    env.reconcile("orders").await
}

fn calls(env: &Environment, setting: &str) -> usize {
    let calls = env.rds.calls("ModifyDBInstance").into_iter();
    calls.filter(|it| !it.parameters[setting].is_null()).count()
}

#[tokio::test]
async fn a_change_that_rds_takes_back_is_told_and_not_requested_again() {
    for (fields, setting) in changes() {
        let mut env = start().await;
        let id = create(&env).await;
        env.rds.roll_back(&id, &[setting]);
        set(&env, &fields);
        let about = fields.to_string();
        let output = attempt(&env).await;
        let expected = match setting {
            "EngineVersion" => "UpgradeFailed",
            _ => "ChangeTakenBack",
        };
        let stalled = output
            .stalled
            .unwrap_or_else(|| panic!("{about}: {:?}", output.conditions));
        assert_eq!(stalled.reason, expected, "{about}");
        assert_eq!(output.conditions[0].reason, expected, "{about}");
        assert!(
            output.readiness.expect("a state").ready,
            "{about}: it serves clients"
        );
        let mut events = output.events.iter();
        let is_told = events.any(|it| it.is_warning && it.reason == expected);
        assert!(is_told, "{about}: {:?}", output.events);
        assert_eq!(calls(&env, setting), 1, "{about}");

        restart(&mut env);
        env.reconcile_repeatedly("orders").await;
        let output = env.reconcile("orders").await;
        assert_eq!(output.conditions[0].reason, expected, "{about}");
        assert_eq!(calls(&env, setting), 1, "{about}: after a restart");

        // Each request of a user leads to one more attempt.
        env.reconcile_requested("orders").await;
        assert_eq!(calls(&env, setting), 2, "{about}");
        let output = attempt(&env).await;
        assert_eq!(output.conditions[0].reason, expected, "{about}");
        assert_eq!(calls(&env, setting), 2, "{about}");

        // And so does another consent, with which it succeeds.
        env.rds.roll_back(&id, &[]);
        set(&env, &json!({"applyChanges": "MaintenanceWindow"}));
        env.reconcile("orders").await;
        env.rds.open_maintenance_window(&id);
        env.rds.advance(LONG);
        let output = env.reconcile("orders").await;
        assert!(
            output.conditions[0].is_true,
            "{about}: {:?}",
            output.conditions
        );
        assert!(output.stalled.is_none(), "{about}");
        let records = &env.object("orders")["status"]["acceptedChanges"];
        assert!(records.is_null(), "{about}: {records}");
    }
}

#[tokio::test]
async fn a_restart_during_a_change_leads_to_no_second_call() {
    for (fields, setting) in changes() {
        let mut env = start().await;
        create(&env).await;
        set(&env, &fields);
        for _ in 0..3 {
            env.reconcile("orders").await;
            restart(&mut env);
        }
        assert_eq!(calls(&env, setting), 1, "{fields}");
        env.rds.advance(LONG);
        let output = env.reconcile("orders").await;
        assert!(
            output.conditions[0].is_true,
            "{fields}: {:?}",
            output.conditions
        );
    }
}

/// The process can end after the call and before the status is stored.
#[tokio::test]
async fn an_upgrade_in_progress_is_recorded_although_its_call_is_not() {
    let mut env = start().await;
    let id = create(&env).await;
    env.rds.roll_back(&id, &["EngineVersion"]);
    set(&env, &json!({"engineVersion": "16.9"}));
    let before = env.object("orders")["status"].clone();
    env.reconcile("orders").await;
    env.edit("orders", |object| object["status"] = before);
    restart(&mut env);
    // RDS has begun.
    env.rds.advance(Duration::from_millis(15));
    env.reconcile("orders").await;
    env.rds.advance(LONG);
    env.reconcile("orders").await;
    let output = env.reconcile("orders").await;
    assert_eq!(output.conditions[0].reason, "UpgradeFailed");
    assert_eq!(calls(&env, "EngineVersion"), 1);
}
