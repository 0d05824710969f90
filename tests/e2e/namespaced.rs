//! Controller that watches only some namespaces, without permissions outside of them.

use std::path::Path;
use std::process::Command;

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use lockstep_envtest::{Cluster, Installation, Moto, Options, eventually};
use serde_json::json;

use crate::env::{condition, database, resource_of};
use crate::standalone_webhook::plain_get;

/// Namespace of the controller, another one that it watches, and one that it does not watch.
const HOME: &str = "team-a";
const OTHER: &str = "team-b";
const ELSEWHERE: &str = "team-c";

pub fn write_manifests(arguments: &[&str], cluster: &Cluster) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("manifests")
        .args(arguments)
        .arg(cluster.directory().join("manifests"))
        .output()
        .expect("the program runs")
}

pub fn databases(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &resource_of(&database("any")))
}

pub async fn create(cluster: &Cluster, namespace: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"},
        "stringData": {"username": "app", "password": "correct-horse"},
    });
    let file = cluster.directory().join("secret.json");
    std::fs::write(&file, secret.to_string()).expect("a file");
    let file = file.to_string_lossy();
    let made = cluster.run_kubectl(&["apply", "-n", namespace, "-f", &file]);
    made.expect("a Secret");
    let mut object = database("orders");
    object["metadata"]["namespace"] = json!(namespace);
    let object = serde_json::from_value(object).expect("an object");
    let databases = databases(cluster.client(), namespace);
    let made = databases.create(&PostParams::default(), &object).await;
    made.expect("stored");
}

/// Applies the cluster-scoped objects as a cluster administrator, then the others as a user with the role `admin` in
/// two namespaces.
async fn tenant_applies(cluster: &Cluster, folder: &Path) {
    for base in ["crds", "crd-protection", "cluster"] {
        let of_cluster = folder.join(base);
        let applied = cluster.run_kubectl(&["apply", "-k", &of_cluster.to_string_lossy()]);
        applied.expect("the cluster-scoped objects");
    }
    for namespace in [HOME, OTHER] {
        let bind = ["--clusterrole=admin", "--user=tenant", "-n", namespace];
        let bound = [&["create", "rolebinding", "tenant"], &bind[..]].concat();
        cluster.run_kubectl(&bound).expect("a binding");
    }
    let folder_name = folder.to_string_lossy();
    // The rules of the ClusterRole `admin` are aggregated asynchronously.
    let applied = eventually("the tenant's `kubectl apply`", async || {
        let apply = ["--as=tenant", "apply", "-k", &folder_name];
        cluster.run_kubectl(&apply).ok()
    });
    applied.await.expect("the tenant has the permissions");
}

/// Creates an `Echo` as the tenant and waits until it is ready.
fn tenant_makes_echo(cluster: &Cluster) -> Result<String, lockstep_envtest::Error> {
    let echo = json!({
        "apiVersion": "demo.example.com/v1alpha1", "kind": "Echo",
        "metadata": {"name": "hello"}, "spec": {"text": "hello"},
    });
    let file = cluster.directory().join("echo.json");
    std::fs::write(&file, echo.to_string()).expect("a file");
    let file = file.to_string_lossy();
    let made = cluster.run_kubectl(&["--as=tenant", "apply", "-n", OTHER, "-f", &file]);
    made.expect("the tenant creates the object");
    let wait = [
        "wait",
        "--for=condition=Ready",
        "echo",
        "hello",
        "--timeout=60s",
    ];
    cluster.run_kubectl(&[&["--as=tenant", "-n", OTHER], &wait[..]].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_needs_only_roles_in_the_namespaces_that_it_watches() {
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node").await.expect("a node");
    let moto = Moto::start().await.expect("moto");
    for namespace in [HOME, OTHER, ELSEWHERE] {
        let made = cluster.run_kubectl(&["create", "namespace", namespace]);
        made.expect("a namespace");
    }
    let written = write_manifests(
        &[
            "--kinds=*,Echo",
            &format!("--watch-namespaces={HOME},{OTHER}"),
        ],
        &cluster,
    );
    assert!(written.status.success(), "{written:?}");
    let folder = cluster.directory().join("manifests");
    let rendered = cluster.run_kubectl(&["kustomize", &folder.to_string_lossy()]);
    let rendered = rendered.expect("a base");
    let kinds: Vec<_> = rendered
        .lines()
        .filter(|line| line.starts_with("kind: "))
        .collect();
    let role = ["kind: Role", "kind: RoleBinding"];
    let expected = [
        &["kind: ServiceAccount"],
        &role[..],
        &role,
        &["kind: Deployment"],
    ]
    .concat();
    assert_eq!(kinds, expected, "no object is cluster-scoped");

    tenant_applies(&cluster, &folder).await;
    let options = Options {
        program: env!("CARGO_BIN_EXE_lockstep").into(),
        controller_env: moto.environment(),
        controller_args: [
            "--rds-poll-interval=100ms",
            "--rds-not-found-grace-period=200ms",
        ]
        .map(String::from)
        .into(),
        controller_server: None,
    };
    let installation = Installation::apply_without_webhook(&cluster, &folder, options).await;
    let mut installation = installation.expect("manifests");
    installation.start_controller().expect("a controller");
    for namespace in [HOME, OTHER, ELSEWHERE] {
        create(&cluster, namespace).await;
    }
    for namespace in [HOME, OTHER] {
        let api = databases(cluster.client(), namespace);
        let ready = eventually("the readiness of the database", async || {
            condition(&api.get("orders").await.ok()?, "Ready")
                .filter(|ready| ready.status == "True")
        });
        let ready = ready.await;
        ready.unwrap_or_else(|error| panic!("{error}: {}", installation.output()));
    }
    let ready = tenant_makes_echo(&cluster);
    ready.unwrap_or_else(|error| panic!("{error}: {}", installation.output()));
    let beyond = databases(cluster.client(), ELSEWHERE);
    let beyond = beyond.get("orders").await.expect("the object exists");
    assert_eq!(
        beyond.data.get("status"),
        None,
        "the controller does not reconcile it"
    );
    assert_eq!(beyond.metadata.finalizers, None);

    let url = installation.controller_health_url();
    let address = url.trim_start_matches("http://");
    let metrics = plain_get(address, "/metrics").await.expect("metrics");
    for namespace in [HOME, OTHER] {
        let up = format!(
            "lockstep_watch_up{{controller=\"clouddatabase/{namespace}\",resource=\"clouddatabases.database.example.com\"}} 1"
        );
        assert!(metrics.contains(&up), "{metrics}");
    }
    let readiness = plain_get(address, "/readyz").await.expect("a response");
    assert!(readiness.contains(" 200 "), "{readiness}");
    let forbidden = installation.output().matches("forbidden").count();
    assert_eq!(forbidden, 0, "{}", installation.output());

    for namespace in [HOME, OTHER] {
        let api = databases(cluster.client(), namespace);
        api.delete("orders", &Default::default())
            .await
            .expect("deletion begins");
        let gone = eventually("the deletion of the object", async || {
            api.get_opt("orders").await.ok()?.is_none().then_some(())
        });
        let gone = gone.await;
        gone.unwrap_or_else(|error| panic!("{error}: {}", installation.output()));
    }
}
