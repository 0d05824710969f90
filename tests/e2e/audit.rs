//! `lockstep audit`: validation of the objects that are stored in a cluster.

use std::process::{Command, Output};

use futures::{StreamExt, stream};
use kube::api::{DynamicObject, PostParams};
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{TestEnv, allow_workloads, database_without_warning};
use crate::running_vector::start_without_nodes;

/// Namespace that an administrator has marked for workloads of Vector.
const MARKED: &str = "logging";

/// Runs the program with the rights of an administrator.
pub fn lockstep(env: &TestEnv, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(arguments)
        .env("KUBECONFIG", env.cluster.kubeconfig())
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn store(env: &TestEnv, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    let stored = env
        .databases()
        .create(&PostParams::default(), &object)
        .await;
    stored.expect("stored");
}

/// Cluster without a webhook and without a running controller.
async fn still() -> TestEnv {
    let mut env = TestEnv::start().await;
    let controller = env.installation.controller();
    controller.terminate().expect("a signal");
    controller.ended().await;
    env.installation
        .remove_webhook_configurations(&env.cluster)
        .expect("the webhook configurations are deleted");
    env
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stored_object_is_validated_and_reported_by_rule() {
    let env = still().await;
    // More than one page of a list request.
    let names: Vec<_> = (0..600).map(|index| format!("good-{index}")).collect();
    stream::iter(&names)
        .for_each_concurrent(16, async |name| {
            store(&env, &database_without_warning(name)).await;
        })
        .await;
    for name in ["bad-1", "bad-2"] {
        let mut object = database_without_warning(name);
        object["spec"]["credentials"]["username"] = json!("user");
        store(&env, &object).await;
    }

    let output = lockstep(&env, &["audit", "--output", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["objects"], 602);
    assert_eq!(
        report["rules"],
        json!([{
            "kind": "CloudDatabase",
            "rule": "username-reserved",
            "denied": ["default/bad-1", "default/bad-2"],
            "warned": [],
            "audited": [],
            "conflicts": [],
        }])
    );
    assert_eq!(output.status.code(), Some(1));

    let policy = env.cluster.directory().join("audit.yaml");
    std::fs::write(
        &policy,
        "rules: {CloudDatabase: {username-reserved: audit}}",
    )
    .expect("a file");
    let output = lockstep(&env, &["audit", "--policy", &policy.to_string_lossy()]);
    let printed = text(&output.stdout);
    assert!(
        printed.contains("default/bad-1, default/bad-2"),
        "{printed}"
    );
    assert!(
        printed.contains("602 objects: 2 violate 1 rules, 0 would be denied"),
        "{printed}"
    );
    assert_eq!(output.status.code(), Some(0));

    let output = lockstep(&env, &["audit", "--kind", "Databse"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = text(&output.stderr);
    assert!(
        printed.contains("CloudDatabase"),
        "the known kinds are listed: {printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_against_cluster_validates_the_result_of_applying_the_file() {
    let env = still().await;
    env.kubectl_apply(&database_without_warning("orders"))
        .expect("stored");
    // Another client has set a limit, which remains when the file is applied again.
    let limit = json!({"spec": {"storage": {"maxSizeGib": 210}}}).to_string();
    env.kubectl(&["patch", "cdb/orders", "--type=merge", "--patch", &limit])
        .expect("patched");

    let file = env.cluster.directory().join("orders.json");
    let check = |object: &Value| {
        std::fs::write(&file, object.to_string()).expect("a file");
        let path = file.to_string_lossy().into_owned();
        let run = |arguments: &[&str]| lockstep(&env, &[arguments, &[&path]].concat());
        (
            run(&["check"]),
            run(&["check", "--against-cluster", "--output", "json"]),
        )
    };
    let mut shrunk = database_without_warning("orders");
    shrunk["spec"]["storage"]["sizeGib"] = json!(50);
    let (alone, against) = check(&shrunk);
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stderr));
    let result: Value = serde_json::from_slice(&against.stdout).expect("JSON");
    assert_eq!(against.status.code(), Some(1));
    assert_eq!(result["errors"][0]["rule"], "storage-shrink");
    assert_eq!(result["errors"].as_array().map(Vec::len), Some(1));

    let mut grown = database_without_warning("orders");
    grown["spec"]["storage"]["sizeGib"] = json!(200);
    let (alone, against) = check(&grown);
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stderr));
    let result: Value = serde_json::from_slice(&against.stdout).expect("JSON");
    assert_eq!(result["errors"][0]["rule"], "max-size-above-size");
    grown["spec"]["storage"]["maxSizeGib"] = json!(400);
    let (_, against) = check(&grown);
    assert_eq!(against.status.code(), Some(0), "{}", text(&against.stdout));

    // An object that does not exist in the cluster is validated as a new one.
    let (_, against) = check(&database_without_warning("new"));
    assert_eq!(against.status.code(), Some(0), "{}", text(&against.stdout));
}

/// Returns the finding about access to the marked namespace.
fn access(report: &[u8]) -> Value {
    let report: Value = serde_json::from_slice(report).expect("JSON");
    let mut findings = report["findings"].as_array().into_iter().flatten();
    let found = findings.find(|finding| finding["namespace"] == MARKED);
    found.cloned().unwrap_or_else(|| panic!("{report}"))
}

/// Binds roles to users, in the marked namespace and elsewhere.
async fn bind_roles(env: &TestEnv) {
    let kubectl = |arguments: &str| {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let done = env.kubectl(&arguments);
        done.unwrap_or_else(|error| env.fail(&error));
    };
    kubectl("create namespace plain");
    kubectl(&format!("create namespace {MARKED}"));
    allow_workloads(&env.cluster, MARKED);
    let bind = "create rolebinding --clusterrole";
    kubectl(&format!("{bind}=edit --user=editor editors -n {MARKED}"));
    kubectl(&format!("{bind}=view --user=viewer viewers -n {MARKED}"));
    kubectl(&format!(
        "{bind}=lockstep-administrator --group=platform platform -n {MARKED}"
    ));
    kubectl(&format!("{bind}=edit --user=stranger editors -n plain"));
    kubectl("create clusterrole secret-reader --verb=get --resource=secrets");
    kubectl(
        "create clusterrolebinding backup --clusterrole=secret-reader --serviceaccount=plain:backup",
    );
    kubectl("create clusterrolebinding auditors --clusterrole=view --user=auditor");
    let may_read = [
        "auth",
        "can-i",
        "get",
        "secrets",
        "-n",
        MARKED,
        "--as=editor",
    ];
    let may_list = ["auth", "can-i", "list", "vectors", "-A", "--as=auditor"];
    let aggregated = eventually("the aggregation of the roles", async || {
        env.kubectl(&may_read).and(env.kubectl(&may_list)).ok()
    });
    aggregated.await.expect("the roles are aggregated");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_who_can_read_what_is_collected_in_a_marked_namespace_are_listed() {
    let env = start_without_nodes(&[]).await;
    bind_roles(&env).await;
    let output = lockstep(&env, &["audit", "--output=json"]);
    let found = access(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    let subjects = found["access"]["subjects"].as_array().expect("a list");
    let rights = |name: &str| {
        let mut subjects = subjects.iter();
        subjects
            .find(|subject| subject["name"] == name)
            .map(|subject| subject["bindings"][0]["rights"].clone())
    };
    let all = json!([
        "ReadSecrets",
        "CreatePods",
        "ExecuteInPods",
        "ActAsServiceAccounts"
    ]);
    assert_eq!(rights("editor"), Some(all), "{found}");
    // Agents are Pods of the author's choice.
    assert_eq!(rights("platform"), Some(json!(["CreatePods"])), "{found}");
    assert_eq!(rights("backup"), Some(json!(["ReadSecrets"])), "{found}");
    for name in ["viewer", "stranger", "auditor", "system:masters"] {
        assert_eq!(rights(name), None, "{name}: {found}");
    }
    let of_control_plane = found["access"]["ofControlPlane"].as_u64();
    assert!(of_control_plane > Some(1), "{found}");

    let output = lockstep(&env, &["audit", "--namespace", MARKED]);
    let printed = text(&output.stdout);
    let rights = "read Secrets, create Pods, execute commands in Pods, act as service accounts";
    let line = format!("User editor by RoleBinding editors (ClusterRole edit: {rights})\n");
    assert!(printed.contains(&line), "{printed}");
    let line = "ServiceAccount plain/backup by ClusterRoleBinding backup (ClusterRole secret-reader: read Secrets)\n";
    assert!(printed.contains(line), "{printed}");
    assert!(!printed.contains("the namespace default"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_read_rbac_objects_the_rest_is_audited() {
    let env = start_without_nodes(&[]).await;
    bind_roles(&env).await;
    let shown = env.kubectl(&["config", "view", "--raw", "--output=json"]);
    let mut config: Value = serde_json::from_str(&shown.expect("a kubeconfig")).expect("JSON");
    config["users"][0]["user"]["as"] = json!("auditor");
    let file = env.cluster.directory().join("auditor.json");
    std::fs::write(&file, config.to_string()).expect("a file");
    let as_auditor = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(["audit", "--kind=Vector"])
            .args(arguments)
            .env("KUBECONFIG", &file)
            .output();
        output.expect("the program runs")
    };
    let output = as_auditor(&["--output=json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let unknown = json!({"unknown": "forbidden"});
    assert_eq!(access(&output.stdout)["access"], unknown);
    let printed = text(&as_auditor(&[]).stdout);
    let expected = "who these are is unknown, because Roles, ClusterRoles and their bindings cannot be read: forbidden";
    assert!(printed.contains(expected), "{printed}");
    assert!(printed.contains("0 objects"), "{printed}");
}
