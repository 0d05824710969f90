//! Permission of the controller on Secrets: its own, and those of the namespaces where an administrator grants it.

use kube::api::{Api, DynamicObject, PostParams};
use lockstep_envtest::{Installation, eventually};
use serde_json::{Value, json};

use crate::env::{TestEnv, condition, database, resource_of};

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_read_only_in_namespaces_with_a_role_binding() {
    let env = TestEnv::start().await;
    let team = "team-a";
    env.kubectl(&["create", "namespace", team])
        .expect("a namespace");
    let literals = [
        "--from-literal=username=app",
        "--from-literal=password=correct-horse",
    ];
    let create = ["create", "secret", "generic", "credentials", "-n", team];
    env.kubectl(&[&create[..], &literals].concat())
        .expect("a Secret");
    let may = |verb: &str, namespace: &str| {
        let account = "--as=system:serviceaccount:lockstep-system:lockstep";
        env.kubectl(&["auth", "can-i", verb, "secrets", account, "-n", namespace])
    };
    for namespace in [team, "kube-system", "lockstep-system"] {
        may("get", namespace).expect_err("the controller may not read any Secret of the namespace");
    }
    may("create", team).expect_err("the controller may not create Secrets in the namespace");

    let mut object = database("orders");
    object["metadata"]["namespace"] = json!(team);
    let databases: Api<DynamicObject> =
        Api::namespaced_with(env.cluster.client(), team, &resource_of(&object));
    // One with Secrets of the controller.
    let mut other = object.clone();
    other["metadata"]["name"] = json!("ledger");
    other["spec"]["credentials"] = json!({"username": "app", "generate": {}});
    for object in [object, other] {
        let object = serde_json::from_value(object).expect("an object");
        let created = databases.create(&PostParams::default(), &object).await;
        created.expect("the webhook does not look at Secrets");
    }
    let unknown = eventually("the missing permission in the other status", async || {
        let object = databases.get("ledger").await.ok()?;
        let ready = condition(&object, "Ready")?;
        (ready.reason == "ChildrenUnknown").then_some(())
    });
    unknown.await.expect("a condition");
    let message = eventually("the missing permission in the status", async || {
        let object = databases.get("orders").await.ok()?;
        let ready = condition(&object, "Ready")?;
        (ready.reason == "SecretForbidden").then_some(ready.message)
    });
    let message = message.await.expect("a condition");
    assert!(message.contains("Secret 'credentials'"), "{message}");
    // The command in the message is all that is missing.
    let command = message.split('`').nth(1).expect("a command");
    assert!(command.contains("lockstep-secret-viewer"), "{message}");
    let arguments: Vec<_> = command.split_whitespace().skip(1).collect();
    env.kubectl(&arguments).expect("a RoleBinding");
    is_ready(&databases, "orders").await;
    for verb in ["create", "delete", "patch", "update"] {
        may(verb, team).expect_err("the viewer changes nothing");
    }

    Installation::allow_secrets(&env.cluster, team)
        .await
        .expect("a RoleBinding");
    for verb in ["get", "create", "delete", "patch"] {
        may(verb, team).unwrap_or_else(|error| panic!("{verb}: {error}"));
    }
    is_ready(&databases, "ledger").await;
    the_earlier_role_has_the_rights_of_the_editor(&env);
}

async fn is_ready(databases: &Api<DynamicObject>, name: &str) {
    let ready = eventually("the readiness of the database", async || {
        let object = databases.get(name).await.ok()?;
        (condition(&object, "Ready")?.status == "True").then_some(())
    });
    ready.await.expect("a database");
}

/// The role of an existing binding cannot be changed.
fn the_earlier_role_has_the_rights_of_the_editor(env: &TestEnv) {
    let rules = |name: &str| {
        let role = env.kubectl(&["get", "clusterrole", name, "--output=json"]);
        let role: Value = serde_json::from_str(&role.expect("a role")).expect("JSON");
        role["rules"].clone()
    };
    assert_eq!(
        rules("lockstep-secret-reader"),
        rules("lockstep-secret-editor")
    );
    assert_ne!(
        rules("lockstep-secret-reader"),
        rules("lockstep-secret-viewer")
    );
}
