//! Passwords that the controller generates, of instances that are adopted, observed or replicas.

use lockstep_controller::ReconcileOutput;
use rds_simulator::{Disturbance, End, Simulator};
use serde_json::{Value, json};

use crate::tests::environment::Environment;

const GENERATED: &str = "orders-master-user";
const PUBLISHED: &str = "orders-connection";

fn generating(fields: &Value) -> Value {
    let mut all = json!({
        "credentials": {"username": "app", "generate": {}}, "connectionSecret": {},
    });
    let fields = fields.as_object().cloned();
    all.as_object_mut()
        .expect("fields")
        .extend(fields.into_iter().flatten());
    all
}

/// Creates an instance with another password than those that are generated.
fn existing(rds: &Simulator, id: &str) {
    rds.create_instance(json!({
        "DBInstanceIdentifier": id, "Engine": "postgres", "EngineVersion": "16.4",
        "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20, "StorageType": "gp3",
        "MasterUsername": "app", "MasterUserPassword": "correct-horse", "StorageEncrypted": true, "PubliclyAccessible": false,
        "BackupRetentionPeriod": 7, "CopyTagsToSnapshot": true,
    }));
    rds.advance(std::time::Duration::from_hours(1));
}

/// Returns the child with a name, if the result has it.
fn child<'a>(output: &'a ReconcileOutput, name: &str) -> Option<&'a Value> {
    let mut children = output.children.iter();
    children.find(|it| it["metadata"]["name"] == name)
}

#[tokio::test]
async fn a_password_that_a_replica_does_not_have_is_not_published() {
    let env = Environment::start().await;
    existing(&env.rds, "source");
    env.allow_sources("source");
    let fields = generating(&json!({"replicaOf": {"identifier": "source"}}));
    let id = env.create("orders", &fields).await;
    let output = env.reconcile_repeatedly("orders").await;
    assert_eq!(env.rds.password(&id).as_deref(), Some("correct-horse"));
    let secret = child(&output, PUBLISHED);
    let password = secret.map(|it| it["stringData"]["password"].clone());
    assert!(password.is_none_or(|it| it.is_null()), "{secret:?}");
    assert_eq!(env.secret(PUBLISHED, "password"), None);
    // Once it is promoted, it gets the password, which is then published.
    env.edit("orders", |object| {
        object["spec"]
            .as_object_mut()
            .expect("fields")
            .remove("replicaOf");
    });
    env.reconcile_repeatedly("orders").await;
    let generated = env.secret(GENERATED, "password").expect("a password");
    assert_eq!(env.rds.password(&id), Some(generated.clone()));
    assert_eq!(env.secret(PUBLISHED, "password"), Some(generated));
}

#[tokio::test]
async fn an_adopted_instance_gets_the_generated_password_even_if_an_answer_is_lost() {
    for is_lost in [false, true] {
        let env = Environment::start().await;
        existing(&env.rds, "orders");
        env.allow_sources("orders");
        let fields = generating(&json!({"adopt": {"identifier": "orders"}}));
        env.store("orders", &fields);
        if is_lost {
            let lost = Disturbance::LostAnswer;
            env.rds.inject("AddTagsToResource", lost, 1);
        }
        env.reconcile_repeatedly("orders").await;
        assert_eq!(env.rds.calls("AddTagsToResource").len(), 1, "adopted once");
        let generated = env.secret(GENERATED, "password").expect("a password");
        assert_eq!(env.rds.password("orders"), Some(generated.clone()));
        assert_eq!(env.secret(PUBLISHED, "password"), Some(generated));
        assert_eq!(env.rds.calls("ModifyDBInstance").len(), 1);
    }
}

#[tokio::test]
async fn no_password_is_generated_while_an_instance_is_only_observed() {
    let env = Environment::start().await;
    existing(&env.rds, "orders");
    env.allow_sources("orders");
    let fields = json!({"adopt": {"identifier": "orders"}, "managementPolicy": "Observe"});
    env.store("orders", &generating(&fields));
    let output = env.reconcile_repeatedly("orders").await;
    assert_eq!(env.secret(GENERATED, "password"), None);
    assert_eq!(env.secret(PUBLISHED, "password"), None);
    let synced = &output.conditions[0];
    assert_eq!(synced.reason, "ObservedDifferent");
    assert!(synced.message.contains("password"), "{}", synced.message);
    assert!(env.rds.writes().is_empty());
    // As soon as it is managed, it gets one.
    env.edit("orders", |object| {
        object["spec"]["managementPolicy"] = json!("Manage");
    });
    env.reconcile_repeatedly("orders").await;
    let generated = env.secret(GENERATED, "password").expect("a password");
    assert_eq!(env.rds.password("orders"), Some(generated));
    // It is kept when the instance is observed again.
    let before = env.rds.password("orders");
    env.edit("orders", |object| {
        object["spec"]["managementPolicy"] = json!("Observe");
    });
    let output = env.reconcile_repeatedly("orders").await;
    let synced = &output.conditions[0];
    assert_eq!(synced.reason, "Observed", "{}", synced.message);
    assert_eq!(env.secret(GENERATED, "password"), before);
}

/// The instance may have either password, whatever the Secret had before.
#[tokio::test]
async fn a_password_that_is_taken_back_after_a_lost_answer_is_set_again() {
    for takes_back_the_version in [false, true] {
        let env = Environment::start().await;
        env.set_password("correct-horse", 1);
        let id = env.create("orders", &json!({})).await;
        env.reconcile("orders").await;
        env.set_password("battery-staple", 2);
        env.rds
            .inject("ModifyDBInstance", Disturbance::LostAnswer, 1);
        // It is recorded before the call.
        env.reconcile("orders").await;
        env.reconcile("orders").await;
        env.rds.advance(std::time::Duration::from_hours(1));
        assert_eq!(env.rds.password(&id).as_deref(), Some("battery-staple"));
        // As if the spec named another Secret again.
        env.set_password("correct-horse", if takes_back_the_version { 1 } else { 3 });
        for _ in 0..4 {
            env.reconcile("orders").await;
            env.rds.advance(std::time::Duration::from_hours(1));
        }
        assert_eq!(env.rds.password(&id).as_deref(), Some("correct-horse"));
    }
}

/// The Secret with the generated password is kept until then.
#[tokio::test]
async fn an_instance_has_its_generated_password_until_rds_accepts_another_one() {
    let env = Environment::start().await;
    let id = env.create("orders", &generating(&json!({}))).await;
    let version = || env.object("orders")["status"]["credentialsVersion"].clone();
    let generated = version();
    let refused = Disturbance::Error("InvalidParameterValue".to_owned(), "by a test".to_owned());
    env.rds.inject("ModifyDBInstance", refused, 100);
    env.set_password("battery-staple", 2);
    env.edit("orders", |object| {
        object["spec"]["credentials"] = json!({"username": "app", "secretName": "s"});
    });
    for _ in 0..4 {
        env.reconcile("orders").await;
        assert_eq!(version(), generated);
    }
    assert_eq!(env.rds.calls("ModifyDBInstance").len(), 1);
    env.rds.clear_injections();
    env.instances().requested.forget_refusals(&id);
    env.reconcile_repeatedly("orders").await;
    assert_eq!(env.rds.password(&id).as_deref(), Some("battery-staple"));
    assert_ne!(version(), generated);
    let requested = &env.object("orders")["status"]["requestedCredentialsVersion"];
    assert_eq!(*requested, Value::Null);
}

#[tokio::test]
async fn a_password_is_requested_together_with_other_changes_and_is_not_repeated() {
    for is_managed in [false, true] {
        let env = Environment::start().await;
        let managed = json!({"credentials": {"username": "app", "managed": {}}});
        let fields = if is_managed { managed } else { json!({}) };
        env.set_password("correct-horse", 1);
        env.create("orders", &fields).await;
        env.rds.clear_journal();
        env.set_password("battery-staple", 2);
        env.edit("orders", |object| {
            object["spec"]["instanceClass"] = json!("db.m7g.large");
            object["spec"]["credentials"] = json!({"username": "app", "secretName": "s"});
        });
        let busy = Disturbance::Error("InvalidDBInstanceState".to_owned(), "by a test".to_owned());
        env.rds.inject("ModifyDBInstance", busy, 3);
        for _ in 0..4 {
            env.reconcile("orders").await;
        }
        let calls = env.calls("ModifyDBInstance");
        assert!(calls[0]["MasterUserPassword"].is_string(), "{calls:?}");
        assert_eq!(calls[0]["DBInstanceClass"], "db.m7g.large");
        // Both, and each alone.
        assert_eq!(calls.len(), 3, "managed: {is_managed}");
    }
}

/// A generated Secret that is rotated meanwhile does not make the present password known.
#[tokio::test]
async fn an_open_request_is_kept_until_the_instance_is_known_to_have_a_password() {
    let env = Environment::start().await;
    env.set_password("correct-horse", 1);
    let id = env.create("orders", &json!({})).await;
    let credentials = |credentials: Value| {
        env.edit("orders", |object| {
            object["spec"]["credentials"] = credentials;
        });
    };
    credentials(json!({"username": "app", "generate": {}}));
    env.rds
        .inject("ModifyDBInstance", Disturbance::LostAnswer, 1);
    // The Secret is stored, the request is recorded, and its answer is lost.
    while env.rds.calls("ModifyDBInstance").is_empty() {
        env.reconcile("orders").await;
    }
    env.rds.advance(std::time::Duration::from_hours(1));
    assert_ne!(env.rds.password(&id).as_deref(), Some("correct-horse"));
    env.remove_secret(GENERATED);
    env.rds.force_status(&id, "modifying", End::Released);
    env.reconcile("orders").await;
    let requested = env.object("orders")["status"]["requestedCredentialsVersion"].clone();
    assert!(requested.is_string(), "{requested}");
    credentials(json!({"username": "app", "secretName": "s"}));
    env.rds.release(&id);
    env.reconcile_repeatedly("orders").await;
    assert_eq!(env.rds.password(&id).as_deref(), Some("correct-horse"));
}
