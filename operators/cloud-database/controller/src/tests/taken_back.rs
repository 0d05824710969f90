//! Changes that RDS accepts, tries, and takes back: each attempt interrupts the database, so it is made once.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use lockstep_controller::ReconcileOutput;
use rds_simulator::Disturbance;
use serde_json::{Value, json};

use crate::instance::modification::unaccepted_changes::Knowledge;
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
    env.reconcile_recorded("orders").await;
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
        env.reconcile("orders").await;
        assert_eq!(calls(&env, setting), 2, "{about}");
        let output = attempt(&env).await;
        assert_eq!(output.conditions[0].reason, expected, "{about}");
        assert_eq!(calls(&env, setting), 2, "{about}");

        // And so does another consent, with which it succeeds.
        env.rds.roll_back(&id, &[]);
        set(&env, &json!({"applyChanges": "MaintenanceWindow"}));
        env.reconcile_recorded("orders").await;
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
        env.reconcile_recorded("orders").await;
        for _ in 0..3 {
            restart(&mut env);
            env.reconcile_recorded("orders").await;
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

/// An earlier release did not record it.
#[tokio::test]
async fn an_upgrade_in_progress_is_recorded_although_its_call_is_not() {
    let mut env = start().await;
    let id = create(&env).await;
    env.rds.roll_back(&id, &["EngineVersion"]);
    set(&env, &json!({"engineVersion": "16.9"}));
    let before = env.object("orders")["status"].clone();
    env.reconcile_recorded("orders").await;
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

fn records(env: &Environment) -> Value {
    env.object("orders")["status"]["acceptedChanges"].clone()
}

/// Lets the time pass in which RDS certainly shows a change that it has accepted.
fn age(env: &Environment) {
    env.edit("orders", |object| {
        let mut records = object["status"]["acceptedChanges"].as_array_mut();
        for record in records.iter_mut().flat_map(|records| records.iter_mut()) {
            record["requestedAt"] = json!("2020-01-01T00:00:00Z");
        }
    });
}

/// Checks that a change whose outcome is unknown is reported, and requested again only if a user requests that. RDS was asked for it a
/// number of times before.
async fn is_unknown_until_a_user_requests_it(
    env: &mut Environment,
    setting: &str,
    before: usize,
    about: &str,
) {
    let output = env.reconcile_repeatedly("orders").await;
    let synced = &output.conditions[0];
    assert_eq!(synced.reason, "OutcomeUnknown", "{about}");
    let annotation = "lockstep.dev/reconcile-requested-at";
    assert!(synced.message.contains(annotation), "{}", synced.message);
    assert!(output.stalled.is_none(), "{about}: it may begin");
    assert_eq!(calls(env, setting), before, "{about}");
    age(env);
    restart(env);
    env.reconcile("orders").await;
    let output = env.reconcile("orders").await;
    assert_eq!(output.conditions[0].reason, "OutcomeUnknown", "{about}");
    let stalled = output.stalled.expect("a user has to act");
    assert_eq!(stalled.reason, "OutcomeUnknown", "{about}");
    let mut events = output.events.iter();
    assert!(events.any(|event| event.is_warning && event.reason == "OutcomeUnknown"));
    assert!(output.readiness.expect("a state").ready, "{about}");
    env.reconcile_repeatedly("orders").await;
    assert_eq!(calls(env, setting), before, "{about}");

    env.reconcile_requested("orders").await;
    assert_eq!(calls(env, setting), before, "{about}: recorded first");
    env.reconcile("orders").await;
    assert_eq!(calls(env, setting), before + 1, "{about}");
    assert!(records(env)[0]["acceptedAt"].is_string(), "{about}");
}

#[tokio::test]
async fn a_change_is_recorded_before_it_is_requested() {
    for (fields, setting) in changes() {
        let env = start().await;
        create(&env).await;
        set(&env, &fields);
        let output = env.reconcile("orders").await;
        assert_eq!(output.requeue_after, Duration::ZERO);
        assert_eq!(output.conditions[0].reason, "Modifying", "{fields}");
        assert_eq!(calls(&env, setting), 0, "{fields}");
        let recorded = records(&env)[0].clone();
        assert!(recorded["requestedAt"].is_string(), "{fields}");
        assert!(recorded["acceptedAt"].is_null(), "{fields}");
        env.reconcile("orders").await;
        assert_eq!(calls(&env, setting), 1, "{fields}");
        let accepted = records(&env)[0].clone();
        assert_eq!(accepted["requestedAt"], recorded["requestedAt"], "{fields}");
        assert!(accepted["acceptedAt"].is_string(), "{fields}");
        env.rds.advance(LONG);
        env.reconcile("orders").await;
        assert!(records(&env).is_null(), "{fields}");
    }
}

#[tokio::test]
async fn a_change_that_interrupts_no_client_is_requested_at_once() {
    let env = start().await;
    create(&env).await;
    set(&env, &json!({"backup": {"retentionDays": 5}}));
    env.reconcile("orders").await;
    assert_eq!(calls(&env, "BackupRetentionPeriod"), 1);
    assert!(records(&env).is_null());
}

#[tokio::test]
async fn a_change_that_only_an_earlier_process_has_recorded_is_not_requested() {
    for (fields, setting) in changes() {
        let mut env = start().await;
        create(&env).await;
        set(&env, &fields);
        env.reconcile("orders").await;
        restart(&mut env);
        let about = fields.to_string();
        is_unknown_until_a_user_requests_it(&mut env, setting, 0, &about).await;
    }
}

/// The process can end after the call and before the status is stored.
#[tokio::test]
async fn a_change_whose_answer_was_not_recorded_and_that_rds_has_taken_back_is_not_requested_again()
{
    for (fields, setting) in changes() {
        let mut env = start().await;
        let id = create(&env).await;
        env.rds.roll_back(&id, &[setting]);
        set(&env, &fields);
        env.reconcile("orders").await;
        let before = env.object("orders")["status"].clone();
        env.reconcile("orders").await;
        assert_eq!(calls(&env, setting), 1, "{fields}");
        env.edit("orders", |object| object["status"] = before);
        restart(&mut env);
        env.rds.advance(LONG);
        let about = fields.to_string();
        is_unknown_until_a_user_requests_it(&mut env, setting, 1, &about).await;
    }
}

#[tokio::test]
async fn a_change_whose_answer_was_lost_and_that_rds_has_taken_back_is_not_requested_again() {
    for (fields, setting) in changes() {
        for is_restarted in [false, true] {
            let mut env = start().await;
            let id = create(&env).await;
            env.rds.roll_back(&id, &[setting]);
            set(&env, &fields);
            env.reconcile("orders").await;
            env.rds
                .inject("ModifyDBInstance", Disturbance::LostAnswer, 1);
            let output = env.reconcile("orders").await;
            assert_eq!(output.conditions[0].reason, "OutcomeUnknown", "{fields}");
            env.rds.advance(LONG);
            if is_restarted {
                restart(&mut env);
            }
            let about = format!("{fields}, restarted: {is_restarted}");
            is_unknown_until_a_user_requests_it(&mut env, setting, 1, &about).await;
        }
    }
}

#[tokio::test]
async fn a_change_whose_answer_was_lost_is_followed_as_soon_as_rds_shows_it() {
    for is_taken_back in [false, true] {
        for (fields, setting) in changes() {
            let about = format!("{fields}, taken back: {is_taken_back}");
            let mut env = start().await;
            let id = create(&env).await;
            if is_taken_back {
                env.rds.roll_back(&id, &[setting]);
            }
            set(&env, &fields);
            env.reconcile("orders").await;
            env.rds
                .inject("ModifyDBInstance", Disturbance::LostAnswer, 1);
            env.reconcile("orders").await;
            restart(&mut env);
            // RDS has begun.
            env.rds.advance(Duration::from_millis(15));
            env.reconcile("orders").await;
            assert!(records(&env)[0]["acceptedAt"].is_string(), "{about}");
            env.rds.advance(LONG);
            env.reconcile("orders").await;
            let output = env.reconcile("orders").await;
            assert_eq!(calls(&env, setting), 1, "{about}");
            let reason = output.conditions[0].reason;
            let expected = match (is_taken_back, setting) {
                (false, _) => "Synced",
                (true, "EngineVersion") => "UpgradeFailed",
                (true, _) => "ChangeTakenBack",
            };
            assert_eq!(reason, expected, "{about}");
            assert_eq!(output.stalled.is_some(), is_taken_back, "{about}");
            assert_eq!(records(&env).is_null(), !is_taken_back, "{about}");
        }
    }
}

#[tokio::test]
async fn a_user_can_request_no_second_attempt_while_the_first_is_under_way() {
    for (fields, setting) in changes() {
        let env = start().await;
        let id = create(&env).await;
        env.rds.roll_back(&id, &[setting]);
        set(&env, &fields);
        env.reconcile_recorded("orders").await;
        env.reconcile_requested("orders").await;
        env.rds.advance(Duration::from_millis(15));
        env.reconcile_requested("orders").await;
        env.rds.advance(LONG);
        env.reconcile("orders").await;
        let output = env.reconcile("orders").await;
        let reason = output.conditions[0].reason;
        let expected = ["UpgradeFailed", "ChangeTakenBack"];
        assert!(expected.contains(&reason), "{fields}: {reason}");
        assert_eq!(calls(&env, setting), 1, "{fields}");
    }
}

/// The answer to the first attempt was lost, so that the record does not say that RDS has accepted it.
#[tokio::test]
async fn a_request_of_a_user_leads_to_another_attempt_only_if_rds_changes_nothing() {
    for status in ["available", "modifying", "upgrading"] {
        let env = start().await;
        let id = create(&env).await;
        let output = fail(&env, Disturbance::LostRequest).await;
        assert_eq!(output.conditions[0].reason, "OutcomeUnknown");
        let made = calls(&env, "DBInstanceClass");
        env.rds.report(&id, json!({"DBInstanceStatus": status}));
        env.reconcile_requested("orders").await;
        env.rds.clear_report(&id);
        env.reconcile("orders").await;
        env.reconcile("orders").await;
        let expected = made + usize::from(status == "available");
        assert_eq!(calls(&env, "DBInstanceClass"), expected, "{status}");
    }
}

/// Lets the first request of a change fail with an error, and returns the result.
async fn fail(env: &Environment, error: Disturbance) -> ReconcileOutput {
    set(env, &json!({"instanceClass": "db.m7g.large"}));
    env.reconcile("orders").await;
    env.rds.inject("ModifyDBInstance", error, 1);
    env.reconcile("orders").await
}

#[tokio::test]
async fn a_change_that_rds_has_not_carried_out_leaves_no_record_and_is_requested_again() {
    let error = |code: &str| Disturbance::Error(code.to_owned(), "by a test".to_owned());
    for (error, reason) in [
        (error("InvalidParameterValue"), "Rejected"),
        (error("InsufficientDBInstanceCapacity"), "Rejected"),
        (error("AccessDenied"), "Rejected"),
        (error("InvalidDBInstanceState"), "Modifying"),
        (Disturbance::throttling(), "CallFailed"),
    ] {
        let env = start().await;
        create(&env).await;
        let output = fail(&env, error).await;
        assert_eq!(output.conditions[0].reason, reason);
        assert!(records(&env).is_null(), "{reason}");
        env.instances().requested.forget_refusals("cdb-orders");
        attempt(&env).await;
        let output = env.reconcile("orders").await;
        assert!(output.conditions[0].is_true, "{reason}");
        assert_eq!(calls(&env, "DBInstanceClass"), 2, "{reason}");
    }
}

#[tokio::test]
async fn a_refusal_counts_although_the_status_that_tells_it_was_not_stored() {
    let env = start().await;
    create(&env).await;
    set(&env, &json!({"instanceClass": "db.m7g.large"}));
    env.reconcile("orders").await;
    let before = env.object("orders")["status"].clone();
    let error = Disturbance::Error("InvalidParameterValue".to_owned(), "by a test".to_owned());
    env.rds.inject("ModifyDBInstance", error, 1);
    env.reconcile("orders").await;
    env.edit("orders", |object| object["status"] = before);
    let output = env.reconcile("orders").await;
    assert_eq!(output.conditions[0].reason, "Rejected");
    assert!(records(&env).is_null());
}

#[tokio::test]
async fn a_change_that_rds_accepts_counts_although_the_status_that_tells_it_was_not_stored() {
    let env = start().await;
    let id = create(&env).await;
    set(&env, &json!({"instanceClass": "db.m7g.large"}));
    env.reconcile("orders").await;
    let before = env.object("orders")["status"].clone();
    env.reconcile("orders").await;
    env.edit("orders", |object| object["status"] = before);
    // RDS does not show it yet.
    let nothing = json!({"PendingModifiedValues": {}, "DBInstanceStatus": "available"});
    env.rds.report(&id, nothing);
    let output = env.reconcile("orders").await;
    assert_eq!(output.conditions[0].reason, "Modifying");
    assert!(records(&env)[0]["acceptedAt"].is_string());
    assert_eq!(calls(&env, "DBInstanceClass"), 1);
}

/// It is not in progress, and was not: each description shows that.
#[tokio::test]
async fn a_change_without_an_answer_that_rds_does_not_show_for_ten_minutes_is_requested_again() {
    for error in [Disturbance::internal_failure(), Disturbance::LostRequest] {
        let env = start().await;
        let id = create(&env).await;
        let output = fail(&env, error).await;
        assert_eq!(output.conditions[0].reason, "OutcomeUnknown");
        assert!(output.stalled.is_none());
        let made = calls(&env, "DBInstanceClass");
        let time_passes = |minutes: i64, until: i64| {
            let before = |minutes| Timestamp::now() - SignedDuration::from_mins(minutes);
            let mut known = env.instances().unaccepted.take(&id);
            for change in &mut known {
                change.knowledge = Knowledge::Unanswered {
                    since: before(minutes),
                    until: before(until),
                };
            }
            assert_eq!(known.len(), 1);
            env.instances().unaccepted.set(&id, known);
        };
        time_passes(9, 1);
        env.reconcile_recorded("orders").await;
        assert_eq!(calls(&env, "DBInstanceClass"), made, "not yet");
        time_passes(10, 1);
        env.reconcile_recorded("orders").await;
        assert_eq!(calls(&env, "DBInstanceClass"), made + 1);
        env.rds.advance(LONG);
        let output = env.reconcile("orders").await;
        assert!(output.conditions[0].is_true, "{:?}", output.conditions);
    }
}

#[tokio::test]
async fn a_recorded_change_that_can_no_longer_be_requested_leaves_no_record() {
    let env = start().await;
    let id = create(&env).await;
    set(&env, &json!({"instanceClass": "db.m7g.large"}));
    env.reconcile("orders").await;
    assert!(records(&env).is_array());
    env.rds
        .force_status(&id, "backing-up", rds_simulator::End::Released);
    env.reconcile("orders").await;
    assert!(records(&env).is_null());
    env.rds.release(&id);
    env.rds.advance(LONG);
    env.reconcile_recorded("orders").await;
    assert_eq!(calls(&env, "DBInstanceClass"), 1);
}

/// The runtime can end a reconciliation at any time.
#[tokio::test]
async fn a_reconciliation_that_ends_during_the_call_leads_to_no_second_call() {
    let env = start().await;
    let id = create(&env).await;
    env.rds.roll_back(&id, &["DBInstanceClass"]);
    set(&env, &json!({"instanceClass": "db.m7g.large"}));
    env.reconcile("orders").await;
    let delay = Disturbance::Delay(Duration::from_mins(1));
    env.rds.inject("ModifyDBInstance", delay, 1);
    tokio::select! {
        _ = env.reconcile("orders") => panic!("the call has not ended"),
        () = async {
            while calls(&env, "DBInstanceClass") == 0 {
                tokio::task::yield_now().await;
            }
        } => {}
    }
    env.rds.advance(LONG);
    let output = env.reconcile_repeatedly("orders").await;
    assert_eq!(output.conditions[0].reason, "OutcomeUnknown");
    assert_eq!(calls(&env, "DBInstanceClass"), 1);
}
