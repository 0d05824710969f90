//! Each error code that RDS documents for a call, and calls without an answer: nothing is lost, and each refusal is reported.

use std::time::Duration;

use aws_runtime::retries::classifiers::THROTTLING_ERRORS;
use lockstep_controller::{OperatorCondition, ReconcileOutput};
use rds_simulator::{COMMON_ERRORS, Disturbance, Model};
use serde_json::{Value, json};

use crate::aws::call_error::OTHERS_AGAIN_AFTER;
use crate::aws::error_code::{self, Class};
use crate::deletion::refused::PROBE_INTERVAL;
use crate::tests::environment::{Environment, Told};

/// Returns the codes that an operation can answer, with their meanings.
fn codes(operation: &str) -> Vec<(String, Class)> {
    let model = Model::rds();
    let documented = model.operations[operation].errors.iter();
    let documented = documented.map(|code| (code.clone(), model.errors[code]));
    let common = COMMON_ERRORS.iter();
    let common = common.map(|(code, status)| ((*code).to_owned(), *status));
    let all = documented.chain(common);
    all.map(|(code, status)| {
        let class = error_code::class(Some(&code), Some(status));
        (code, class)
    })
    .collect()
}

/// Lets the next call of an operation fail, and nothing after it.
fn inject(env: &Environment, operation: &str, code: &str) {
    env.rds.clear_injections();
    env.rds.clear_journal();
    let text = "by a test".to_owned();
    let error = Disturbance::Error(code.to_owned(), text);
    env.rds.inject(operation, error, 1);
}

/// Checks the error of a call that has failed.
fn check(output: &ReconcileOutput, code: &str, class: Class, about: &str) {
    check_again_after(output, code, class, OTHERS_AGAIN_AFTER, about);
}

/// Checks the error of a call of the only deletion that waits for its reason.
fn check_deletion(output: &ReconcileOutput, code: &str, class: Class) {
    check_again_after(output, code, class, PROBE_INTERVAL, code);
}

/// Checks the error of a call that has failed, and when it is repeated if its reason is outside of the object.
fn check_again_after(
    output: &ReconcileOutput,
    code: &str,
    class: Class,
    time: Duration,
    about: &str,
) {
    let told = Told::of(output);
    let (is_stalled, reason, again_after) = match class {
        Class::Object => (true, "RejectedByRds", None),
        Class::Outside => (true, "RejectedByRds", Some(time)),
        Class::Access => (true, "AccessDenied", Some(time)),
        Class::Busy | Class::Unavailable | Class::Repeated => (false, "RdsCallFailed", None),
    };
    assert_eq!(
        (told.is_stalled, told.reason),
        (is_stalled, reason),
        "{about}"
    );
    assert_eq!(told.again_after, again_after, "{about}");
    assert!(told.message.contains(code), "{about}: {}", told.message);
    assert!(told.message.contains("by a test"), "{about}");
}

fn synced(output: &ReconcileOutput) -> &OperatorCondition {
    let mut conditions = output.conditions.iter();
    let found = conditions.find(|it| it.type_ == "Synced");
    found.unwrap_or_else(|| panic!("a condition is expected: {output:?}"))
}

#[tokio::test]
async fn a_creation_that_fails_is_reported_and_repeated_and_leaves_nothing() {
    let env = Environment::start().await;
    let source = env.create("source", &json!({})).await;
    env.take_snapshot(&source, "before").await;
    let snapshot = json!({"restoreFrom": {"snapshot": "before"}});
    let time = json!({"restoreFrom": {"pointInTime": {"sourceInstance": source, "latest": true}}});
    let replica = json!({"replicaOf": {"identifier": source}});
    for (operation, fields) in [
        ("CreateDBInstance", json!({})),
        ("RestoreDBInstanceFromDBSnapshot", snapshot),
        ("RestoreDBInstanceToPointInTime", time),
        ("CreateDBInstanceReadReplica", replica),
    ] {
        for (number, (code, class)) in codes(operation).into_iter().enumerate() {
            let about = format!("{operation}, {code}");
            let name = format!("{}-{number}", operation.to_lowercase());
            let id = format!("cdb-{name}");
            env.store(&name, &fields);
            env.reconcile(&name).await;
            assert_eq!(env.object(&name)["status"]["region"], "eu-central-1");
            inject(&env, operation, &code);
            let output = env.reconcile(&name).await;
            assert_eq!(env.rds.calls(operation).len(), 1, "{about}");
            assert!(env.rds.instance(&id).is_none(), "{about}");
            let region = &env.object(&name)["status"]["region"];
            if class == Class::Repeated {
                // RDS says that the instance exists, and does not list it.
                assert_eq!(Told::of(&output).reason, "InstanceNotFoundYet", "{about}");
                assert_eq!(region, "eu-central-1", "{about}");
            } else {
                check(&output, &code, class, &about);
                let is_proof = matches!(class, Class::Object | Class::Outside | Class::Access);
                assert_eq!(region.is_null(), is_proof, "{about}");
            }
            assert_eq!(env.requests(operation, &code), 1, "{about}");
            // Once the reason is gone, the instance is created.
            if number % 10 == 0 {
                env.reconcile(&name).await;
                env.reconcile(&name).await;
                assert!(env.rds.instance(&id).is_some(), "{about}");
            }
        }
    }
}

#[tokio::test]
async fn a_modification_that_fails_keeps_the_instance_ready_and_is_reported() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    for (code, class) in codes("ModifyDBInstance") {
        let current = env.rds.instance(&id).expect("the instance")["DBInstanceClass"].clone();
        let other = ["db.t4g.micro", "db.m7g.large"].map(Value::from);
        let other = other.into_iter().find(|it| *it != current);
        env.edit("orders", |object| {
            object["spec"]["instanceClass"] = json!(other);
        });
        inject(&env, "ModifyDBInstance", &code);
        let output = env.reconcile_recorded("orders").await;
        // The change can interrupt clients, and may be under way.
        let may_be_done = matches!(class, Class::Unavailable | Class::Repeated)
            && !THROTTLING_ERRORS.contains(&code.as_str());
        let reason = reason_of(class, may_be_done);
        check_modification(&output, &code, reason);
        assert_eq!(env.requests("ModifyDBInstance", &code), 1, "{code}");
        let records = env.object("orders")["status"]["acceptedChanges"].clone();
        assert_eq!(records.is_array(), may_be_done, "{code}: {records}");
        // Of what was not carried out, a refusal is not requested again at once, and anything else is.
        env.reconcile_recorded("orders").await;
        let is_repeated = class == Class::Unavailable && !may_be_done;
        let calls = env.calls("ModifyDBInstance").len();
        assert_eq!(calls, 1 + usize::from(is_repeated), "{code}");
        env.rds.advance(Duration::from_hours(1));
        env.instances().requested.forget_refusals("cdb-orders");
        // The next change has a record of its own.
        let current = env.rds.instance(&id).expect("the instance")["DBInstanceClass"].clone();
        env.edit("orders", |object| object["spec"]["instanceClass"] = current);
        env.reconcile("orders").await;
    }
}

/// Returns the reason of a modification that has failed.
fn reason_of(class: Class, may_be_done: bool) -> &'static str {
    match class {
        Class::Object | Class::Outside | Class::Access => "Rejected",
        Class::Busy => "Modifying",
        Class::Unavailable | Class::Repeated if may_be_done => "OutcomeUnknown",
        Class::Unavailable | Class::Repeated => "CallFailed",
    }
}

fn check_modification(output: &ReconcileOutput, code: &str, reason: &str) {
    assert!(output.error.is_none(), "{code}: {:?}", output.error);
    let ready = output.readiness.as_ref().expect("a state");
    assert!(ready.ready, "{code}: {}", ready.message);
    let synced = synced(output);
    assert_eq!((synced.is_true, synced.reason), (false, reason), "{code}");
    assert!(synced.message.contains(code), "{code}: {}", synced.message);
    let mut events = output.events.iter();
    let warning = events.find(|it| it.is_warning && it.reason == "ModificationRejected");
    assert_eq!(warning.is_some(), reason == "Rejected", "{code}");
    assert!(warning.is_none_or(|it| it.note.contains(code)), "{code}");
}

#[tokio::test]
async fn tags_that_are_not_changed_keep_the_instance_ready_and_are_reported() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    for operation in ["AddTagsToResource", "RemoveTagsFromResource"] {
        let is_added = operation == "AddTagsToResource";
        for (code, class) in codes(operation) {
            env.instances().requested.forget_refusals(&id);
            // The tag exists if it is to be removed.
            for is_set in [!is_added, is_added] {
                env.edit("orders", |object| {
                    let tags = if is_set {
                        json!({"team": "shop"})
                    } else {
                        json!({})
                    };
                    object["spec"]["tags"] = tags;
                });
                if is_set != is_added {
                    env.reconcile("orders").await;
                    env.reconcile("orders").await;
                }
            }
            inject(&env, operation, &code);
            let output = env.reconcile("orders").await;
            check_modification(&output, &code, reason_of(class, false));
            assert_eq!(env.requests(operation, &code), 1, "{operation}, {code}");
        }
    }
}

#[tokio::test]
async fn a_promotion_that_fails_is_reported_and_leaves_a_replica() {
    let env = Environment::start().await;
    let source = env.create("source", &json!({})).await;
    let id = env
        .create("reader", &json!({"replicaOf": {"identifier": source}}))
        .await;
    env.edit("reader", |object| {
        object["spec"]
            .as_object_mut()
            .expect("fields")
            .remove("replicaOf");
    });
    for (code, class) in codes("PromoteReadReplica") {
        inject(&env, "PromoteReadReplica", &code);
        let output = env.reconcile("reader").await;
        check_modification(&output, &code, reason_of(class, false));
        let instance = env.rds.instance(&id).expect("the instance");
        assert_eq!(
            instance["ReadReplicaSourceDBInstanceIdentifier"],
            source.as_str()
        );
        assert_eq!(env.requests("PromoteReadReplica", &code), 1, "{code}");
    }
}

#[tokio::test]
async fn a_deletion_that_fails_is_reported_and_repeated() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    for (code, class) in codes("DeleteDBInstance") {
        let name = format!("{id}-final");
        env.edit("orders", |object| {
            object["status"]["deletionRequest"] = json!({"finalSnapshotId": name});
        });
        inject(&env, "DeleteDBInstance", &code);
        let output = env.finalize("orders").await.expect("more to do");
        assert_eq!(env.rds.calls("DeleteDBInstance").len(), 1, "{code}");
        assert_eq!(env.requests("DeleteDBInstance", &code), 1, "{code}");
        let request = &env.object("orders")["status"]["deletionRequest"];
        match (code.as_str(), class) {
            // Another snapshot is taken, and never none.
            ("DBSnapshotAlreadyExists", _) => {
                let name = request["finalSnapshotId"].as_str().expect("a name");
                assert!(name.starts_with(&format!("{id}-final-")), "{name}");
            }
            // The next reconciliation finds out why it is missing.
            ("DBInstanceNotFound", _) | (_, Class::Busy) => {
                assert!(output.error.is_none(), "{code}: {:?}", output.error);
                assert!(request.is_object(), "{code}");
            }
            _ => {
                check_deletion(&output, &code, class);
                // It may have been carried out unless RDS has rejected it.
                assert_eq!(request.is_null(), Told::of(&output).is_stalled, "{code}");
            }
        }
    }
}

#[tokio::test]
async fn an_instance_that_is_not_described_counts_as_ready_for_a_limited_time() {
    let mut env = Environment::start().await;
    env.create("orders", &json!({})).await;
    for grace_period in [Duration::from_hours(1), Duration::ZERO] {
        env.set(|shared| shared.config.unavailable_grace_period = grace_period);
        for (code, class) in codes("DescribeDBInstances") {
            // It may be missing, which another test is about.
            if code == "DBInstanceNotFound" {
                continue;
            }
            inject(&env, "DescribeDBInstances", &code);
            let output = env.reconcile("orders").await;
            let told = Told::of(&output);
            let is_inconclusive = !grace_period.is_zero() && class != Class::Object;
            assert_eq!(told.is_inconclusive, is_inconclusive, "{code}");
            let is_unavailable = class == Class::Unavailable;
            assert_eq!(told.is_stalled, !is_unavailable, "{code}");
            let reason = match class {
                Class::Access => "AccessDenied",
                Class::Unavailable => "RdsCallFailed",
                _ => "RejectedByRds",
            };
            assert_eq!(told.reason, reason, "{code}");
            assert!(told.message.contains(&code), "{code}: {}", told.message);
            assert!(env.rds.writes().is_empty(), "{code}");
        }
    }
    env.finalize("orders").await;
    for (code, class) in codes("DescribeDBInstances") {
        if code != "DBInstanceNotFound" {
            inject(&env, "DescribeDBInstances", &code);
            let output = env.finalize("orders").await.expect("more to do");
            check_deletion(&output, &code, class);
        }
    }
}

#[tokio::test]
async fn a_final_snapshot_that_is_not_found_out_keeps_the_object() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    env.finalize("orders").await;
    env.rds.remove_instance(&id);
    for (code, class) in codes("DescribeDBSnapshots") {
        inject(&env, "DescribeDBSnapshots", &code);
        let output = env.finalize("orders").await.expect("more to do");
        match code.as_str() {
            "DBInstanceNotFound" | "DBSnapshotNotFound" => {
                assert!(Told::of(&output).is_stalled, "{code}");
            }
            _ => check_deletion(&output, &code, class),
        }
        assert_eq!(env.requests("DescribeDBSnapshots", &code), 1, "{code}");
    }
    env.rds.clear_injections();
    let output = env.finalize("orders").await.expect("more to do");
    assert_eq!(Told::of(&output).reason, "InstanceMissing");
}

#[tokio::test]
async fn a_creation_without_an_answer_leads_to_one_instance() {
    let env = Environment::start().await;
    for (number, disturbance) in [Disturbance::LostRequest, Disturbance::LostAnswer]
        .into_iter()
        .enumerate()
    {
        let name = number.to_string();
        env.store(&name, &json!({}));
        env.reconcile(&name).await;
        env.rds.inject("CreateDBInstance", disturbance, 1);
        let told = Told::of(&env.reconcile(&name).await);
        assert_eq!((told.is_stalled, told.reason), (false, "RdsCallFailed"));
        assert_eq!(env.object(&name)["status"]["region"], "eu-central-1");
        assert_eq!(
            env.requests("CreateDBInstance", "<error>"),
            number as u64 + 1
        );
        let output = env.reconcile(&name).await;
        assert!(output.error.is_none(), "{:?}", output.error);
        assert_eq!(env.rds.instance_ids().len(), number + 1);
    }
}

#[tokio::test]
async fn a_server_that_is_not_reached_says_nothing_about_the_instance() {
    let mut env = Environment::start().await;
    env.create("orders", &json!({})).await;
    env.store("billing", &json!({}));
    env.reconcile("billing").await;
    env.disconnect().await;
    let told = Told::of(&env.reconcile("orders").await);
    assert!(told.is_inconclusive && !told.is_stalled, "{told:?}");
    assert_eq!(told.reason, "RdsCallFailed");
    // It may have been created.
    let told = Told::of(&env.reconcile("billing").await);
    assert_eq!((told.is_stalled, told.reason), (false, "RdsCallFailed"));
    assert_eq!(env.object("billing")["status"]["region"], "eu-central-1");
    let output = env.finalize("orders").await.expect("more to do");
    let told = Told::of(&output);
    assert_eq!((told.is_stalled, told.reason), (false, "RdsCallFailed"));
}

#[test]
fn codes_of_throttling_are_none_of_a_refusal() {
    for operation in ["CreateDBInstance", "ModifyDBInstance"] {
        for (code, class) in codes(operation) {
            if THROTTLING_ERRORS.contains(&code.as_str()) {
                assert_eq!(class, Class::Unavailable, "{code}");
            }
        }
    }
}

/// RDS answers so, for example, if backups are requested for a replica that can have none.
#[tokio::test]
async fn a_field_that_is_never_in_its_state_keeps_no_other_from_being_applied() {
    let env = Environment::start().await;
    let id = env.create("orders", &json!({})).await;
    env.rds.refuse(
        "ModifyDBInstance",
        "BackupRetentionPeriod",
        "InvalidDBInstanceState",
        "not for this instance",
    );
    env.edit("orders", |object| {
        object["spec"]["instanceClass"] = json!("db.m7g.large");
        object["spec"]["backup"] = json!({"retentionDays": 5});
    });
    let output = env.reconcile_recorded("orders").await;
    assert!(synced(&output).message.contains("not for this instance"));
    env.rds.advance(Duration::from_hours(1));
    let instance = env.rds.instance(&id).expect("the instance");
    assert_eq!(instance["DBInstanceClass"], "db.m7g.large");
}

/// The rejection says nothing about the call before it.
#[tokio::test]
async fn a_rejected_creation_after_one_without_an_answer_keeps_the_record_of_its_region() {
    let env = Environment::start().await;
    env.store("orders", &json!({}));
    env.reconcile("orders").await;
    let region = || env.object("orders")["status"]["region"].clone();
    env.rds
        .inject("CreateDBInstance", Disturbance::LostAnswer, 1);
    env.reconcile("orders").await;
    env.rds.clear_injections();
    env.rds
        .set_timing(|timing| timing.listing_delay = Duration::from_hours(1));
    inject(&env, "CreateDBInstance", "AccessDenied");
    env.reconcile("orders").await;
    assert!(region().is_string(), "the instance may exist");
    // A first call that is rejected has created nothing.
    env.store("billing", &json!({}));
    env.reconcile("billing").await;
    inject(&env, "CreateDBInstance", "AccessDenied");
    env.reconcile("billing").await;
    assert!(env.object("billing")["status"]["region"].is_null());
}

/// RDS lists an accepted creation late. A rejection after it says nothing about it.
#[tokio::test]
async fn a_rejected_creation_after_an_accepted_one_keeps_the_record_of_its_region() {
    let env = Environment::start().await;
    env.store("orders", &json!({}));
    env.reconcile("orders").await;
    env.rds
        .set_timing(|timing| timing.listing_delay = Duration::from_hours(1));
    let before = env.object("orders")["status"].clone();
    let output = env.reconcile("orders").await;
    assert!(output.error.is_none(), "{:?}", output.error);
    // What the accepted call has reported is lost.
    env.edit("orders", |object| object["status"] = before);
    inject(&env, "CreateDBInstance", "AccessDenied");
    env.reconcile("orders").await;
    assert_eq!(env.object("orders")["status"]["region"], "eu-central-1");
}
