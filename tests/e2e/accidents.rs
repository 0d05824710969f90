//! Deletions in the wrong order, and the way out: install again, and the objects finish their deletion by their
//! deletion policies.

use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use lockstep_envtest::{Installation, Options, eventually};
use serde_json::json;

use crate::env::{NAMESPACE, SECRET, TestEnv, database, resource_of, root, validating_webhook};

const CRD: &str = "clouddatabases.database.example.com";

/// The databases of every test, with their deletion policies.
const DATABASES: [(&str, &str); 3] = [
    ("orders", "Delete"),
    ("ledger", "Snapshot"),
    ("invoices", "Retain"),
];

async fn with_databases() -> TestEnv {
    let env = TestEnv::start_with_workloads().await;
    for (name, policy) in DATABASES {
        let mut object = database(name);
        object["spec"]["deletionPolicy"] = json!(policy);
        env.kubectl_apply(&object).expect("stored");
    }
    for (name, _) in DATABASES {
        env.condition(name, "Ready", "True").await;
    }
    env
}

/// Applies the manifests of the repository again, without starting the processes.
async fn apply_again(env: &mut TestEnv) {
    // A new Pod has an empty volume.
    let keys = env.cluster.directory().join("tls");
    std::fs::remove_dir_all(keys).expect("the volume of the last Pod");
    let quick = [
        "--rds-poll-interval=100ms",
        "--rds-not-found-grace-period=200ms",
    ];
    let options = Options {
        program: env!("CARGO_BIN_EXE_lockstep").into(),
        controller_env: env.aws_environment(),
        controller_args: quick.map(String::from).into(),
        controller_server: None,
    };
    let manifests = root().join("manifests/config");
    let installation = Installation::apply(&env.cluster, &manifests, options).await;
    env.installation = installation.unwrap_or_else(|error| env.fail(&error.to_string()));
}

async fn install_again(env: &mut TestEnv) {
    apply_again(env).await;
    let started = env.installation.start(&env.cluster).await;
    started.unwrap_or_else(|error| env.fail(&error.to_string()));
}

fn stop(env: &mut TestEnv) {
    env.installation.controller().kill();
    env.installation.webhook().kill();
}

/// Requests the deletion of all databases, without waiting.
async fn delete_databases(env: &TestEnv) {
    for (name, _) in DATABASES {
        let deleted = env.databases().delete(name, &DeleteParams::default()).await;
        deleted.expect("the deletion begins");
    }
}

async fn wait_until_gone(env: &TestEnv, what: &[&str]) {
    let gone = eventually("the deletion of an object", async || {
        let found = [&["get", "--ignore-not-found", "-o", "name"], what].concat();
        env.kubectl(&found).ok()?.is_empty().then_some(())
    });
    gone.await
        .unwrap_or_else(|error| env.fail(&format!("{error}: {what:?}")));
}

/// Waits until no database is left, and checks that the deletion policies were applied.
async fn policies_are_applied(env: &TestEnv) {
    for (name, _) in DATABASES {
        env.gone(name).await;
    }
    let instances = env.instances().await;
    assert_eq!(
        instances.len(),
        1,
        "only the retained instance: {instances:?}"
    );
    let snapshots = env.rds.describe_db_snapshots().send().await;
    let snapshots = snapshots
        .expect("moto answers")
        .db_snapshots
        .unwrap_or_default();
    let finals = snapshots.iter().filter(|snapshot| {
        let name = snapshot.db_snapshot_identifier().unwrap_or_default();
        name.ends_with("-final")
    });
    assert_eq!(
        finals.count(),
        1,
        "the final snapshot of the policy Snapshot"
    );
}

/// Also shows the accidents "webhook configurations left behind" and "controller gone with finalizers left".
#[tokio::test(flavor = "multi_thread")]
async fn after_the_deletion_of_the_namespace_of_the_installation() {
    let mut env = with_databases().await;
    stop(&mut env);
    env.kubectl(&["delete", "namespace", "lockstep-system"])
        .expect("deleted");

    // The configurations stay, and deny every object, because no webhook answers.
    assert_eq!(validating_webhook(&env.cluster, "failurePolicy"), "Fail");
    let denied = env.kubectl_apply(&database("new")).expect_err("denied");
    assert!(denied.contains("failed calling webhook"), "{denied}");
    // A deletion is not denied, but it does not end.
    delete_databases(&env).await;
    let stored = env
        .databases()
        .get("orders")
        .await
        .expect("it still exists");
    assert!(stored.metadata.deletion_timestamp.is_some());
    assert_eq!(stored.metadata.finalizers.map(|all| all.len()), Some(1));
    assert_eq!(env.instances().await.len(), 3);

    install_again(&mut env).await;
    policies_are_applied(&env).await;
    env.kubectl_apply(&database("new")).expect("admitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_controller_the_webhook_configurations_can_be_deleted_to_store_objects() {
    let mut env = TestEnv::start_with_workloads().await;
    stop(&mut env);
    let denied = env.kubectl_apply(&database("new")).expect_err("denied");
    assert!(denied.contains("failed calling webhook"), "{denied}");
    let kinds = "validatingwebhookconfiguration,mutatingwebhookconfiguration";
    env.kubectl(&["delete", kinds, "lockstep"])
        .expect("deleted");
    eventually("the API server to read the configurations", async || {
        env.kubectl_apply(&database("new")).ok()
    })
    .await
    .expect("stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_deletion_of_the_crds_without_a_controller() {
    let mut env = with_databases().await;
    stop(&mut env);
    let allow = "lockstep.dev/allow-deletion=true";
    env.kubectl(&["annotate", "crd", CRD, allow])
        .expect("annotated");
    env.kubectl(&["delete", "crd", CRD, "--wait=false"])
        .expect("deleted");
    eventually("the deletion of the objects to begin", async || {
        let stored = env.databases().get("orders").await.ok()?;
        stored.metadata.deletion_timestamp.map(drop)
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(env.instances().await.len(), 3);

    apply_again(&mut env).await;
    env.installation.start_controller().expect("a controller");
    policies_are_applied_and_crd_gone(&env).await;
    // The CRD is created by the next installation.
    stop_controller(&mut env);
    install_again(&mut env).await;
    env.kubectl_apply(&database("new")).expect("admitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_deletion_of_the_crds_with_a_controller() {
    let env = with_databases().await;
    let allow = "lockstep.dev/allow-deletion=true";
    env.kubectl(&["annotate", "crd", CRD, allow])
        .expect("annotated");
    env.kubectl(&["delete", "crd", CRD, "--wait=false"])
        .expect("deleted");
    policies_are_applied_and_crd_gone(&env).await;
}

fn stop_controller(env: &mut TestEnv) {
    env.installation.controller().kill();
}

async fn policies_are_applied_and_crd_gone(env: &TestEnv) {
    wait_until_gone(env, &["crd", CRD]).await;
    let instances = env.instances().await;
    assert_eq!(
        instances.len(),
        1,
        "only the retained instance: {instances:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_deletion_of_all_manifests_with_databases() {
    let mut env = with_databases().await;
    let manifests = root().join("manifests/config");
    let manifests = manifests.to_string_lossy();
    // If a policy protects the CRDs, the command reports that and deletes everything else.
    let deleted = env.kubectl(&["delete", "-k", &manifests, "--wait=false"]);
    drop(deleted);
    stop(&mut env);
    wait_until_gone(&env, &["namespace", "lockstep-system"]).await;
    assert_eq!(
        env.databases()
            .list(&Default::default())
            .await
            .expect("a list")
            .items
            .len(),
        3
    );
    delete_databases(&env).await;

    apply_again(&mut env).await;
    env.installation.start_controller().expect("a controller");
    eventually("the deletion of the databases", async || {
        let names = DATABASES.map(|(name, _)| name);
        for name in names {
            match env.databases().get_opt(name).await {
                Ok(None) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                _ => return None,
            }
        }
        Some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(env.instances().await.len(), 1, "only the retained instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_deletion_of_the_namespace_of_the_objects_without_a_controller() {
    let mut env = TestEnv::start_with_workloads().await;
    env.kubectl(&["create", "namespace", "team"])
        .expect("a namespace");
    let from = format!("--namespace={NAMESPACE}");
    let secret = env.kubectl(&["get", "secret", SECRET, &from, "-o", "json"]);
    let mut secret: serde_json::Value =
        serde_json::from_str(&secret.expect("the Secret")).expect("JSON");
    secret["metadata"] = json!({"name": SECRET, "namespace": "team"});
    env.kubectl_apply(&secret).expect("a Secret");
    let allowed = Installation::allow_secrets(&env.cluster, "team").await;
    allowed.expect("a RoleBinding");
    let mut object = database("orders");
    object["metadata"]["namespace"] = json!("team");
    let databases: Api<DynamicObject> =
        Api::namespaced_with(env.cluster.client(), "team", &resource_of(&object));
    let created = serde_json::from_value(object).expect("an object");
    let created = databases.create(&PostParams::default(), &created).await;
    created.expect("stored");
    env.condition_of(&databases, "orders", "Ready", "True")
        .await;
    stop_controller(&mut env);

    env.kubectl(&["delete", "namespace", "team", "--wait=false"])
        .expect("deleted");
    eventually("the namespace to report the finalizer", async || {
        let shown = env
            .kubectl(&["get", "namespace", "team", "-o", "yaml"])
            .ok()?;
        let is_reported = shown.contains("database.example.com/finalizer");
        is_reported.then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert_eq!(env.instances().await.len(), 1);

    env.installation.start_controller().expect("a controller");
    wait_until_gone(&env, &["namespace", "team"]).await;
    assert_eq!(env.instances().await.len(), 0);
}
