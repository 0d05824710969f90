//! Controller of a whole cluster without webhook.

use lockstep_envtest::{Cluster, Installation, Moto, Options, eventually};
use serde_json::json;

use crate::env::{condition, database};
use crate::namespaced::{create, databases, write_manifests};
use crate::uninstall::lockstep;

#[tokio::test(flavor = "multi_thread")]
async fn without_webhook_the_controller_reconciles_and_suspends_invalid_objects() {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let written = write_manifests(&["--no-webhook"], &cluster);
    assert!(written.status.success(), "{written:?}");
    let folder = cluster.directory().join("manifests");
    let options = Options {
        program: env!("CARGO_BIN_EXE_lockstep").into(),
        controller_env: moto.environment(),
        controller_args: vec!["--rds-poll-interval=100ms".to_owned()],
        controller_server: None,
    };
    let installation = Installation::apply_without_webhook(&cluster, &folder, options).await;
    let mut installation = installation.expect("manifests");
    installation.start_controller().expect("a controller");
    create(&cluster, "default").await;
    let allowed = Installation::allow_secrets(&cluster, "default").await;
    allowed.expect("a RoleBinding");
    let mut invalid = database("invalid");
    invalid["spec"]["credentials"]["username"] = json!("user");
    let file = cluster.directory().join("invalid.json");
    std::fs::write(&file, invalid.to_string()).expect("a file");
    let stored = cluster.run_kubectl(&["apply", "--filename", &file.to_string_lossy()]);
    stored.expect("no webhook denies the object");
    let api = databases(cluster.client(), "default");
    for (name, type_, status) in [("orders", "Ready", "True"), ("invalid", "Valid", "False")] {
        let what = format!("{type_}={status} of {name}");
        let seen = eventually(&what, async || {
            let object = api.get(name).await.ok()?;
            condition(&object, type_).filter(|condition| condition.status == status)
        });
        let seen = seen.await;
        seen.unwrap_or_else(|error| panic!("{error}: {}", installation.output()));
    }
    the_state_of_an_object_decides_the_exit_code(&cluster, "cdb/orders", 0, "Available");
    invalidated_object_is_ready_and_not_synced(&cluster).await;
    the_state_of_an_object_decides_the_exit_code(&cluster, "CloudDatabase/orders", 1, "Suspended");
    let missing = json!({"secretName": "missing", "username": "app"});
    let mut waiting = database("waiting");
    waiting["spec"]["credentials"] = missing;
    std::fs::write(&file, waiting.to_string()).expect("a file");
    let stored = cluster.run_kubectl(&["apply", "--filename", &file.to_string_lossy()]);
    stored.expect("it is stored");
    the_state_of_an_object_decides_the_exit_code(
        &cluster,
        "clouddatabases/waiting",
        2,
        "not ready after 1s",
    );
    the_state_of_an_object_decides_the_exit_code(&cluster, "clouddatabase/none", 2, "not found");
    the_state_of_an_object_decides_the_exit_code(&cluster, "bucket/orders", 2, "its kinds are");
    // The controller has no permissions for a webhook, and needs none.
    let output = installation.output();
    assert!(
        !output.contains("forbidden") && !output.contains("ERROR"),
        "{output}"
    );
    let configurations = [
        "get",
        "validatingwebhookconfigurations,mutatingwebhookconfigurations",
    ];
    let configurations = [&configurations[..], &["--output=name"]].concat();
    assert_eq!(cluster.run_kubectl(&configurations).expect("a list"), "");
}

/// Makes the object of a running instance invalid: its clients are served, and nothing is changed.
async fn invalidated_object_is_ready_and_not_synced(cluster: &Cluster) {
    let patch = r#"{"spec": {"storage": {"sizeGib": 200}, "credentials": {"username": "user"}}}"#;
    let patch = ["patch", "cdb/orders", "--type=merge", "--patch", patch];
    cluster.run_kubectl(&patch).expect("no webhook denies it");
    let api = databases(cluster.client(), "default");
    let seen = eventually("the invalid object to be suspended", async || {
        let object = api.get("orders").await.ok()?;
        let is_current =
            object.data["status"]["observedGeneration"] == json!(object.metadata.generation);
        is_current.then_some(object)
    });
    let object = seen.await.expect("a suspended object");
    let expected = [
        ("Valid", "False", "Invalid"),
        ("Stalled", "True", "Invalid"),
        ("Ready", "True", "Available"),
        ("Synced", "False", "Suspended"),
    ];
    for (type_, status, reason) in expected {
        let found = condition(&object, type_).unwrap_or_else(|| panic!("{type_}: {object:?}"));
        assert_eq!(
            (found.status.as_str(), found.reason.as_str()),
            (status, reason),
            "{type_}"
        );
    }
    assert_eq!(object.data["status"]["allocatedStorageGib"], 100);
}

/// Waits for an object with `lockstep status`.
fn the_state_of_an_object_decides_the_exit_code(
    cluster: &Cluster,
    object: &str,
    code: i32,
    text: &str,
) {
    let kubeconfig = cluster.kubeconfig();
    let timeout = if code == 2 { "1s" } else { "1m" };
    let args = ["status", object, "--wait", "--timeout", timeout];
    let output = lockstep(&kubeconfig, &[&args[..], &["--namespace=default"]].concat());
    let all = [output.stdout, output.stderr].concat();
    let all = String::from_utf8_lossy(&all);
    assert_eq!(output.status.code(), Some(code), "{all}");
    assert!(all.contains(text), "{all}");
}
