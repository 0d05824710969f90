//! Permission of the controller on Secrets: its own, and those of the namespaces where an administrator grants it.

use kube::api::{Api, DynamicObject, PostParams};
use lockstep_envtest::{Installation, eventually};
use serde_json::json;

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
    assert!(message.contains("lockstep-secret-reader"), "{message}");

    Installation::allow_secrets(&env.cluster, team)
        .await
        .expect("a RoleBinding");
    for verb in ["get", "create", "delete", "patch"] {
        may(verb, team).unwrap_or_else(|error| panic!("{verb}: {error}"));
    }
    for name in ["orders", "ledger"] {
        let ready = eventually("the readiness of the database", async || {
            let object = databases.get(name).await.ok()?;
            (condition(&object, "Ready")?.status == "True").then_some(())
        });
        ready.await.expect("a database");
    }
}
