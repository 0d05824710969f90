//! Deletions of an instance by its status.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use lockstep_controller::ReconcileOutput;
use rds_simulator::{Disturbance, End, Outcome};
use serde_json::{Value, json};

use crate::aws::call_error::OTHERS_AGAIN_AFTER;
use crate::deletion::refused::PROBE_INTERVAL;
use crate::instance::enqueue::Enqueue;
use crate::instance::instance_status::{self, STATUSES};
use crate::tests::environment::{Environment, Told};

/// Statuses that do not pass, in which RDS takes no final snapshot.
const WITHOUT_SNAPSHOT: &[&str] = &["failed", "incompatible-network", "incompatible-restore"];

/// A refusal is reported as an error if the status does not pass.
fn check_refusal(output: &ReconcileOutput, status: &str, policy: &str) {
    if instance_status::meaning(status).problem.is_none() {
        assert!(
            output.error.is_none(),
            "{status}, {policy}: {:?}",
            output.error
        );
        return;
    }
    let told = Told::of(output);
    let reason = match policy {
        "Snapshot" => "NoFinalSnapshot",
        _ => "RejectedByRds",
    };
    assert_eq!((told.is_stalled, told.reason), (true, reason), "{status}");
    assert!(told.message.contains(status), "{}", told.message);
}

#[tokio::test]
async fn an_object_without_an_instance_goes_although_rds_does_not_answer() {
    let mut env = Environment::start().await;
    env.store(
        "orders",
        &json!({"credentials": {"username": "app", "secretName": "missing"}}),
    );
    env.reconcile("orders").await;
    let status = &env.object("orders")["status"];
    assert!(status["instanceId"].is_string() && status["region"].is_null());
    env.create("billing", &json!({})).await;
    env.disconnect().await;
    assert!(env.finalize("orders").await.is_none(), "nothing is left");
    let left = env.finalize("billing").await.expect("more to do");
    assert!(Told::of(&left).message.contains("RDS"));
}

#[tokio::test]
async fn an_instance_is_deleted_in_each_status_and_never_without_the_snapshot_of_the_policy() {
    let env = Environment::start().await;
    let names = STATUSES.iter().map(|(name, _)| *name);
    let mut number = 0;
    for status in names.chain(["of-a-later-release"]) {
        for policy in ["Delete", "Snapshot"] {
            number += 1;
            let name = number.to_string();
            let id = env.create(&name, &json!({"deletionPolicy": policy})).await;
            env.rds.force_status(&id, status, End::Released);
            env.rds.clear_journal();
            let about = format!("{status}, {policy}");
            // The request is recorded before it is sent.
            env.finalize(&name).await.expect("more to do");
            assert_eq!(env.rds.calls("DeleteDBInstance").len(), 0, "{about}");
            let output = env.finalize(&name).await.expect("more to do");
            let calls = env.rds.calls("DeleteDBInstance");
            let is_impossible = policy == "Snapshot" && WITHOUT_SNAPSHOT.contains(&status);
            if is_impossible {
                let told = Told::of(&output);
                assert_eq!(
                    (told.is_stalled, told.reason),
                    (true, "NoFinalSnapshot"),
                    "{about}"
                );
                assert!(calls.is_empty(), "{about}");
            } else if status == "deleting" {
                assert!(output.error.is_none() && calls.is_empty(), "{about}");
            } else {
                let [call] = &calls[..] else {
                    panic!("{about}: one call is expected: {calls:?}");
                };
                let snapshot = match policy {
                    "Snapshot" => json!(format!("{id}-final")),
                    _ => Value::Null,
                };
                assert_eq!(
                    call.parameters["FinalDBSnapshotIdentifier"], snapshot,
                    "{about}"
                );
                let skips = call.parameters["SkipFinalSnapshot"] == true;
                assert_eq!(skips, policy == "Delete", "{about}");
                // RDS rejects the call until the instance has another status.
                let is_accepted = call.outcome == Outcome::Succeeded;
                let expected = if is_accepted {
                    assert!(
                        output.events.iter().any(|it| it.reason == "Deleting"),
                        "{about}"
                    );
                    "deleting"
                } else {
                    check_refusal(&output, status, policy);
                    status
                };
                let instance = env.rds.instance(&id).expect("the instance");
                assert_eq!(instance["DBInstanceStatus"], expected, "{about}");
            }
            env.rds.remove_instance(&id);
        }
    }
}

/// Names of the objects that were enqueued.
#[derive(Clone, Default)]
struct Enqueued(Arc<Mutex<BTreeSet<String>>>);

impl Enqueued {
    fn record(&self, env: &mut Environment) {
        let names = self.clone();
        let enqueue = Enqueue::new(move |owner| {
            let mut names = names.0.lock().unwrap_or_else(PoisonError::into_inner);
            names.insert(owner.name.clone());
        });
        env.set(|shared| shared.enqueue = enqueue);
    }

    fn take(&self) -> Vec<String> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *names).into_iter().collect()
    }
}

/// Prepares objects whose next finalization sends a call to delete.
async fn prepare(env: &Environment, names: &[&str]) {
    for name in names {
        env.create(name, &json!({"deletionPolicy": "Delete"})).await;
        env.finalize(name).await.expect("more to do");
    }
}

#[tokio::test]
async fn one_deletion_tries_a_refused_call_again_soon_and_the_others_follow_its_success() {
    let mut env = Environment::start().await;
    let enqueued = Enqueued::default();
    enqueued.record(&mut env);
    prepare(&env, &["a", "b", "c", "d"]).await;
    let denied = Disturbance::access_denied("DeleteDBInstance");
    let outside = Disturbance::Error("SnapshotQuotaExceeded".to_owned(), "full".to_owned());
    env.rds.inject("DeleteDBInstance", denied, 4);
    // Each attempt records the request anew, and then sends it.
    let refused = async |name: &str| {
        env.finalize(name).await.expect("more to do");
        let output = env.finalize(name).await.expect("more to do");
        Told::of(&output).again_after
    };
    let first = env.finalize("b").await.expect("more to do");
    assert_eq!(Told::of(&first).again_after, Some(PROBE_INTERVAL));
    for name in ["a", "c"] {
        let output = env.finalize(name).await.expect("more to do");
        assert_eq!(Told::of(&output).again_after, Some(OTHERS_AGAIN_AFTER));
    }
    // Another reason has a probe of its own.
    env.rds.clear_injections();
    env.rds.inject("DeleteDBInstance", outside, 1);
    let output = env.finalize("d").await.expect("more to do");
    assert_eq!(Told::of(&output).again_after, Some(PROBE_INTERVAL));
    assert!(enqueued.take().is_empty());
    // The one that has waited longest stays the probe.
    env.rds
        .inject("DeleteDBInstance", Disturbance::access_denied(""), 2);
    assert_eq!(refused("c").await, Some(OTHERS_AGAIN_AFTER));
    assert_eq!(refused("b").await, Some(PROBE_INTERVAL));
    assert!(enqueued.take().is_empty());
    env.rds.clear_injections();
    env.finalize("b").await.expect("more to do");
    assert!(enqueued.take().is_empty(), "the call was not sent yet");
    env.finalize("b").await.expect("more to do");
    assert_eq!(enqueued.take(), ["a", "c"], "d waits for something else");
}

#[tokio::test]
async fn another_deletion_becomes_the_probe_of_one_that_is_given_up() {
    let mut env = Environment::start().await;
    let enqueued = Enqueued::default();
    enqueued.record(&mut env);
    prepare(&env, &["a", "b", "c"]).await;
    let denied = Disturbance::access_denied("DeleteDBInstance");
    env.rds.inject("DeleteDBInstance", denied, 4);
    for name in ["a", "b", "c"] {
        env.finalize(name).await.expect("more to do");
    }
    env.edit("a", |object| {
        object["spec"]["deletionPolicy"] = json!("Retain");
    });
    assert!(env.finalize("a").await.is_none(), "it is retained");
    assert_eq!(enqueued.take(), ["b"]);
    env.finalize("b").await.expect("more to do");
    let output = env.finalize("b").await.expect("more to do");
    assert_eq!(Told::of(&output).again_after, Some(PROBE_INTERVAL));
}

/// Each deletion takes a part of a quota of AWS.
#[tokio::test]
async fn deletions_that_wait_for_a_quota_follow_one_after_the_other() {
    let mut env = Environment::start().await;
    let enqueued = Enqueued::default();
    enqueued.record(&mut env);
    prepare(&env, &["a", "b", "c"]).await;
    let full = Disturbance::Error("SnapshotQuotaExceeded".to_owned(), "full".to_owned());
    env.rds.inject("DeleteDBInstance", full, 3);
    for name in ["a", "b", "c"] {
        env.finalize(name).await.expect("more to do");
    }
    for (name, next) in [("a", vec!["b"]), ("b", vec!["c"]), ("c", Vec::new())] {
        env.finalize(name).await.expect("more to do");
        env.finalize(name).await.expect("more to do");
        assert_eq!(enqueued.take(), next);
    }
}

/// The state of an instance is no reason for which others wait.
#[tokio::test]
async fn a_deletion_that_is_refused_because_of_its_own_instance_is_no_probe() {
    let mut env = Environment::start().await;
    let enqueued = Enqueued::default();
    enqueued.record(&mut env);
    let protected = json!({"deletionPolicy": "Delete", "deletionProtection": true});
    for name in ["a", "b"] {
        env.create(name, &protected).await;
        let output = env.finalize(name).await.expect("more to do");
        let told = Told::of(&output);
        assert_eq!((told.reason, told.again_after), ("DeletionProtected", None));
    }
    env.edit("a", |object| {
        object["spec"]["deletionProtection"] = json!(false);
    });
    env.finalize("a").await.expect("more to do");
    assert!(enqueued.take().is_empty());
}
