//! Deletions of an instance by its status.

use lockstep_controller::ReconcileOutput;
use rds_simulator::{End, Outcome};
use serde_json::{Value, json};

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
