//! The manifests as they are committed, on a real control plane.

use control_plane::{Cluster, eventually};

use crate::world::root;

#[tokio::test(flavor = "multi_thread")]
async fn the_pods_of_the_manifests_pass_restricted_security_and_run() {
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node-0").await.expect("a node");
    let manifests = root().join("manifests");
    cluster
        .run_kubectl(&["apply", "-k", &manifests.to_string_lossy()])
        .expect("everything applies");
    let rollout = [
        "rollout",
        "status",
        "deployment/lockstep",
        "-n",
        "lockstep-system",
        "--timeout=60s",
    ];
    cluster.run_kubectl(&rollout).expect("kwok plays the Pods");
    let template =
        "jsonpath={.items[*].spec.containers[?(@.name=='webhook')].volumeMounts[*].name}";
    let mounts = cluster
        .run_kubectl(&["get", "pods", "-n", "lockstep-system", "-o", template])
        .expect("Pods");
    assert_eq!(
        mounts.split_whitespace().collect::<Vec<_>>(),
        ["tls", "policy", "tls", "policy"],
        "the gate's containers see no credentials"
    );
}

/// Whoever writes a status could write what the loop takes for accepted.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_edits_databases_cannot_write_their_status() {
    let cluster = Cluster::start().await.expect("a cluster");
    let manifests = root().join("manifests");
    cluster
        .run_kubectl(&["apply", "-k", &manifests.to_string_lossy()])
        .expect("everything applies");
    for name in ["edit", "admin"] {
        let user = format!("--user={name}-user");
        let role = format!("--clusterrole={name}");
        cluster
            .run_kubectl(&["create", "clusterrolebinding", name, &role, &user])
            .expect("a binding");
    }
    for user in ["edit-user", "admin-user"] {
        let may = |verb: &str, subresource: &str| {
            let user = format!("--as={user}");
            let subresource = format!("--subresource={subresource}");
            let question = ["auth", "can-i", verb, "clouddatabases", &subresource, &user];
            cluster.run_kubectl(&question).is_ok()
        };
        eventually("the cluster's own role gaining the kind", async || {
            may("patch", "").then_some(())
        })
        .await
        .expect("it is aggregated");
        for verb in ["patch", "update"] {
            assert!(!may(verb, "status"), "{user} may {verb} the status");
        }
    }
}

#[test]
fn the_committed_manifests_are_what_the_program_writes() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["manifests", "--check"])
        .arg(root().join("manifests"))
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
