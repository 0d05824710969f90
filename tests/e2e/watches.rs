//! Watches of the controller that deliver nothing: their connections are lost, or a right is missing.

use std::time::Duration;

use lockstep_envtest::{Cluster, Moto, eventually_within};
use serde_json::json;

use crate::env::{EnvOptions, TestEnv, database};
use crate::status::{create_leader_pod, metrics_address, status};
use crate::tcp_proxy::TcpProxy;

/// Time within which a lost connection is noticed.
const NOTICED_WITHIN: Duration = Duration::from_mins(2);

/// Starts a controller behind a proxy of the API server, whose health port the API server reaches as that of a Pod.
async fn start() -> (TestEnv, TcpProxy) {
    let cluster = Cluster::start().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let server = cluster.server().trim_start_matches("https://");
    let wire = TcpProxy::to(server.parse().expect("an address")).await;
    let (address, port) = metrics_address();
    let options = EnvOptions {
        controller_server: Some(format!("https://{}", wire.address())),
        controller_args: vec![format!("--health-probe-bind-address=0.0.0.0:{port}")],
        ..EnvOptions::default()
    };
    let env = TestEnv::install(cluster, moto, options).await;
    env.cluster.add_node("node").await.expect("a node");
    create_leader_pod(&env, &address, port);
    env.kubectl_apply(&database("before")).expect("stored");
    env.condition("before", "Ready", "True").await;
    (env, wire)
}

/// Waits until `lockstep status` exits with this code. Returns its output.
async fn eventually_status(env: &TestEnv, expected: i32, text: &str) -> String {
    let admin = env.cluster.kubeconfig();
    let mut last = String::new();
    let shown = eventually_within(NOTICED_WITHIN, text, async || {
        let (code, shown) = status(&admin);
        last.clone_from(&shown);
        (code == Some(expected) && shown.contains(text)).then_some(shown)
    })
    .await;
    shown.unwrap_or_else(|error| env.fail(&format!("{error}: {last}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_behind_lost_connections_are_noticed_within_two_minutes() {
    let (env, wire) = start().await;
    eventually_status(&env, 0, "healthy").await;
    wire.lose_connections();
    env.kubectl_apply(&database("after")).expect("stored");
    let ready = eventually_within(NOTICED_WITHIN, "the new instance", async || {
        let instances = env.instances().await;
        (instances.len() == 2).then_some(())
    });
    ready
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.condition("after", "Ready", "True").await;
    eventually_status(&env, 0, "healthy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_and_the_watch_that_needs_it_are_named() {
    let (env, wire) = start().await;
    eventually_status(&env, 0, "healthy").await;
    let role = env
        .kubectl(&["get", "clusterrole", "lockstep", "-o", "json"])
        .expect("the role");
    let granted: serde_json::Value = serde_json::from_str(&role).expect("JSON");
    let mut reduced = granted.clone();
    for rule in reduced["rules"].as_array_mut().expect("rules") {
        let resources = rule["resources"].as_array().expect("resources");
        if resources.contains(&json!("clouddatabases")) {
            let verbs = rule["verbs"].as_array_mut().expect("verbs");
            verbs.retain(|verb| verb != "watch" && verb != "list");
        }
    }
    assert_ne!(reduced, granted);
    let patch_rules = |role: &serde_json::Value| {
        let patch = json!([{"op": "replace", "path": "/rules", "value": role["rules"]}]);
        let name = "lockstep";
        let patch = patch.to_string();
        env.kubectl(&["patch", "clusterrole", name, "--type=json", "-p", &patch])
            .expect("the role is changed");
    };
    patch_rules(&reduced);
    let missing = "watch clouddatabases.database.example.com";
    let shown = eventually_status(&env, 1, missing).await;
    assert!(shown.contains("lacks rights"), "{shown}");

    // The API server has authorized the open watch. The next one is denied.
    wire.cut();
    wire.mend();
    let shown = eventually_status(&env, 1, "pod-0: ").await;
    let is_named = |line: &str| line.contains("pod-0: ") && line.contains("clouddatabases");
    assert!(shown.lines().any(is_named), "{shown}");

    patch_rules(&granted);
    eventually_status(&env, 0, "healthy").await;
    env.kubectl_apply(&database("after")).expect("stored");
    env.condition("after", "Ready", "True").await;
}
