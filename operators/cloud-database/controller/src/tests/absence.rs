//! Instances that RDS does not list for a moment, or not any more.

use std::time::Duration;

use lockstep_controller::FinalizeOutcome;
use rds_simulator::{Disturbance, Outcome};
use serde_json::{Value, json};

use crate::tests::environment::{Environment, Told};

const LONG: Duration = Duration::from_hours(1);

/// Starts an environment with a grace period that no test reaches.
async fn start() -> Environment {
    let mut env = Environment::start().await;
    set_grace_period(&mut env, LONG);
    env
}

/// Sets the grace period, as a restart of the controller does.
fn set_grace_period(env: &mut Environment, period: Duration) {
    env.set(|shared| shared.config.not_found_grace_period = period);
}

/// Lets the next description of instances show nothing.
fn lapse(env: &Environment) {
    env.rds
        .inject("DescribeDBInstances", Disturbance::Nothing, 1);
}

fn accepted_deletions(env: &Environment) -> usize {
    let calls = env.rds.calls("DeleteDBInstance").into_iter();
    calls.filter(|it| it.outcome == Outcome::Succeeded).count()
}

/// Each call of a deletion that describes something, for both policies.
#[tokio::test]
async fn one_answer_without_the_instance_orphans_nothing() {
    for policy in ["Delete", "Snapshot"] {
        for lapsed_step in 0..6 {
            let env = start().await;
            let id = env
                .create("orders", &json!({"deletionPolicy": policy}))
                .await;
            env.rds.clear_journal();
            let about = format!("{policy}, {lapsed_step}");
            let mut step = 0;
            loop {
                if step == lapsed_step {
                    lapse(&env);
                }
                match env.finalization("orders").await {
                    FinalizeOutcome::Done => break,
                    FinalizeOutcome::Retained(text) => panic!("{about}: {text}"),
                    FinalizeOutcome::Waiting(output) => {
                        assert!(output.error.is_none(), "{about}: {:?}", output.error);
                    }
                }
                step += 1;
                assert!(step < 12, "{about}: it never ends");
                // The instance is deleted after it was seen as such.
                if env.object("orders")["status"]["deletionRequest"]["seenDeleting"] == true {
                    env.rds.advance(LONG);
                }
            }
            assert!(env.rds.instance(&id).is_none(), "{about}: an orphan");
            assert_eq!(accepted_deletions(&env), 1, "{about}");
        }
    }
}

#[tokio::test]
async fn an_accepted_deletion_is_recorded_apart_from_its_intention() {
    let env = start().await;
    env.create("orders", &json!({"deletionPolicy": "Delete"}))
        .await;
    let request = || env.object("orders")["status"]["deletionRequest"].clone();
    env.finalize("orders").await;
    assert!(request().is_object() && request()["acceptedAt"].is_null());
    env.finalize("orders").await;
    assert!(request()["acceptedAt"].is_string());
    assert_eq!(request()["seenDeleting"], false);
    env.finalize("orders").await;
    assert_eq!(request()["seenDeleting"], true);
    env.rds.advance(LONG);
    assert!(env.finalize("orders").await.is_none(), "no grace period");
}

/// A description can be older than the acceptance, so that the deletion is requested again.
#[tokio::test]
async fn a_rejected_repetition_does_not_take_back_an_accepted_deletion() {
    let env = start().await;
    let id = env
        .create("orders", &json!({"deletionPolicy": "Delete"}))
        .await;
    env.finalize("orders").await;
    env.finalize("orders").await;
    env.rds
        .report(&id, json!({"DBInstanceStatus": "available"}));
    let denied = Disturbance::access_denied("DeleteDBInstance");
    env.rds.inject("DeleteDBInstance", denied, 1);
    let output = env.finalize("orders").await.expect("more to do");
    assert_eq!(Told::of(&output).reason, "AccessDenied");
    let request = &env.object("orders")["status"]["deletionRequest"];
    assert!(request["acceptedAt"].is_string(), "{request}");
}

/// Also the record of an earlier release, which has no acceptance.
#[tokio::test]
async fn a_recorded_request_proves_no_absence_before_the_grace_period() {
    for seen in [Value::Null, json!("2026-01-01T00:00:00Z")] {
        let mut env = start().await;
        let id = env
            .create("orders", &json!({"deletionPolicy": "Delete"}))
            .await;
        env.edit("orders", |object| {
            object["status"]["deletionRequest"] = json!({"acceptedAt": seen});
        });
        env.rds.remove_instance(&id);
        let output = env.finalize("orders").await.expect("more to do");
        assert!(output.error.is_none(), "{:?}", output.error);
        set_grace_period(&mut env, Duration::ZERO);
        assert!(env.finalize("orders").await.is_none(), "it is deleted");
    }
}

#[tokio::test]
async fn an_erased_status_proves_nothing() {
    for status in [json!({}), json!({"completeFor": "another"})] {
        let mut env = start().await;
        let id = env
            .create("orders", &json!({"deletionPolicy": "Delete"}))
            .await;
        let erase = || env.edit("orders", |object| object["status"] = status.clone());
        erase();
        lapse(&env);
        env.finalize("orders").await.expect("more to do");
        env.finalize("orders").await.expect("more to do");
        env.finalize("orders").await.expect("more to do");
        assert_eq!(accepted_deletions(&env), 1);
        // It is gone, and the status is erased again.
        env.rds.remove_instance(&id);
        erase();
        let output = env.finalize("orders").await.expect("more to do");
        assert!(output.error.is_none(), "{:?}", output.error);
        set_grace_period(&mut env, Duration::ZERO);
        match env.finalization("orders").await {
            FinalizeOutcome::Retained(text) => {
                assert!(
                    text.contains("may have been erased") && text.contains(&id),
                    "{text}"
                );
            }
            outcome => panic!("{outcome:?}"),
        }
    }
}

#[tokio::test]
async fn an_object_without_a_request_goes_at_once_if_its_status_is_complete() {
    let mut env = start().await;
    env.store("orders", &json!({}));
    assert_eq!(env.finalization("orders").await, FinalizeOutcome::Done);
    // One of an earlier release is deletable, too.
    env.store("billing", &json!({}));
    env.edit("billing", |object| object["status"] = json!({}));
    env.finalize("billing").await.expect("it is waited for");
    set_grace_period(&mut env, Duration::ZERO);
    assert!(env.finalize("billing").await.is_none());
}

#[tokio::test]
async fn an_erased_status_keeps_the_object_while_rds_cannot_be_asked() {
    let mut env = Environment::start().await;
    env.create("orders", &json!({})).await;
    env.edit("orders", |object| object["status"] = json!({}));
    env.disconnect().await;
    let output = env.finalize("orders").await.expect("more to do");
    assert_eq!(Told::of(&output).reason, "RdsCallFailed");
}

/// Otherwise the database would count as unavailable for a moment, or be replaced.
#[tokio::test]
async fn a_living_instance_that_one_answer_does_not_show_stays_ready() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    let resource_id = env.object("orders")["status"]["resourceId"].clone();
    for replaces in [Value::Null, resource_id] {
        env.edit("orders", |object| {
            let annotations = json!({"database.example.com/replaces-instance": replaces});
            object["metadata"]["annotations"] = annotations;
            if replaces.is_null() {
                object["metadata"]["annotations"] = json!({});
            }
        });
        env.rds.clear_journal();
        lapse(&env);
        let output = env.reconcile("orders").await;
        assert!(output.readiness.expect("a state").ready);
        assert!(env.rds.writes().is_empty());
        assert_eq!(env.rds.instance_ids(), std::slice::from_ref(&id));
    }
}

#[tokio::test]
async fn a_released_instance_that_one_answer_does_not_show_loses_its_tag() {
    let env = start().await;
    let id = env
        .create("orders", &json!({"deletionPolicy": "Retain"}))
        .await;
    lapse(&env);
    assert!(env.finalize("orders").await.is_none());
    let instance = env.rds.instance(&id).expect("the instance");
    let tags = instance["TagList"].to_string();
    assert!(!tags.contains("database.example.com/uid"), "{tags}");
}

#[tokio::test]
async fn a_renamed_instance_keeps_the_object_that_is_being_deleted() {
    let env = Environment::start().await;
    let id = env
        .create("orders", &json!({"deletionPolicy": "Delete"}))
        .await;
    env.finalize("orders").await;
    env.rds
        .change(&id, json!({"DBInstanceIdentifier": "orders-old"}));
    let output = env.finalize("orders").await.expect("more to do");
    assert_eq!(Told::of(&output).reason, "InstanceRenamed");
    assert!(!Told::of(&output).message.contains("Retain"));
}

/// The process can end between the call that tags the instance and the write of the status.
#[tokio::test]
async fn an_adoption_is_recorded_before_the_instance_is_tagged() {
    let env = start().await;
    crate::tests::sources::create(&env.rds, "legacy", &[], false);
    env.rds.advance(LONG);
    env.allow_sources("legacy");
    let fields = json!({"adopt": {"identifier": "legacy"}, "deletionPolicy": "Delete"});
    env.store("orders", &fields);
    let mut before = env.object("orders")["status"].clone();
    while env.rds.calls("AddTagsToResource").is_empty() {
        before = env.object("orders")["status"].clone();
        env.reconcile("orders").await;
    }
    // What the last reconciliation has reported is lost.
    env.edit("orders", |object| object["status"] = before);
    lapse(&env);
    env.finalize("orders").await.expect("more to do");
    env.finalize("orders").await.expect("more to do");
    env.finalize("orders").await.expect("more to do");
    assert_eq!(accepted_deletions(&env), 1);
}

/// The grace period of the missing instance is over, and says nothing about the one that replaces it.
#[tokio::test]
async fn a_new_instance_has_a_grace_period_of_its_own() {
    let mut env = Environment::start().await;
    let id = env
        .create("orders", &json!({"deletionPolicy": "Delete"}))
        .await;
    env.rds.remove_instance(&id);
    let replaced = env.object("orders")["status"]["resourceId"].clone();
    env.edit("orders", |object| {
        object["metadata"]["annotations"] =
            json!({"database.example.com/replaces-instance": replaced});
    });
    let period = Duration::from_secs(2);
    set_grace_period(&mut env, period);
    env.rds.set_timing(|timing| timing.listing_delay = LONG);
    let before = std::time::Instant::now();
    env.reconcile("orders").await;
    while env.rds.calls("CreateDBInstance").len() < 2 {
        env.reconcile("orders").await;
        assert!(before.elapsed() < LONG);
        tokio::task::yield_now().await;
    }
    assert!(!env.instances().is_past_grace_period(&id));
}

/// The explanation for the absence of the instance is over.
#[tokio::test]
async fn a_deletion_that_rds_has_taken_back_explains_no_absence() {
    for policy in ["Delete", "Snapshot"] {
        let env = start().await;
        let id = env
            .create("orders", &json!({"deletionPolicy": policy}))
            .await;
        for _ in 0..3 {
            env.finalize("orders").await.expect("more to do");
        }
        let request = || env.object("orders")["status"]["deletionRequest"].clone();
        assert_eq!(request()["seenDeleting"], true, "{policy}");
        env.rds
            .report(&id, json!({"DBInstanceStatus": "available"}));
        let output = env.finalize("orders").await.expect("more to do");
        assert!(output.requeue_after.is_zero(), "{policy}");
        assert_eq!(request()["seenDeleting"], false, "{policy}");
        assert!(request()["acceptedAt"].is_string(), "{policy}");
        assert_eq!(accepted_deletions(&env), 1, "{policy}");
        env.rds.remove_instance(&id);
        env.finalize("orders").await.expect("the grace period");
    }
}

/// RDS can show the tags that an instance had before its adoption.
#[tokio::test]
async fn one_list_of_tags_without_the_owner_orphans_no_adopted_instance() {
    let mut env = start().await;
    crate::tests::sources::create(&env.rds, "legacy", &[], false);
    env.rds.advance(LONG);
    env.allow_sources("legacy");
    let fields = json!({"adopt": {"identifier": "legacy"}, "deletionPolicy": "Delete"});
    env.store("orders", &fields);
    env.reconcile_repeatedly("orders").await;
    let instance = env.rds.instance("legacy").expect("the instance");
    let tags = instance["TagList"].clone();
    assert!(tags.to_string().contains("database.example.com/uid"));
    env.rds.report("legacy", json!({"TagList": []}));
    env.finalize("orders").await.expect("more to do");
    env.rds.report("legacy", json!({"TagList": tags}));
    env.finalize("orders").await.expect("more to do");
    env.finalize("orders").await.expect("more to do");
    assert_eq!(accepted_deletions(&env), 1);
    // One that is not the object's any more is left after the grace period.
    env.rds.report("legacy", json!({"TagList": []}));
    set_grace_period(&mut env, Duration::ZERO);
    let outcome = env.finalization("orders").await;
    assert!(
        matches!(outcome, FinalizeOutcome::Retained(_)),
        "{outcome:?}"
    );
}
