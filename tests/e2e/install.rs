//! The manifests as they are committed, on a real control plane.

use control_plane::{Cluster, eventually};
use k8s_openapi::api::core::v1::{Pod, PodSpec, VolumeProjection};
use kube::api::{Api, ListParams};

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
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "lockstep-system");
    let pods = pods.list(&ListParams::default()).await.expect("Pods");
    assert_eq!(pods.items.len(), 2);
    for pod in pods {
        only_the_controller_has_credentials(&pod.spec.expect("a Pod has one"));
    }
}

/// As the API server has stored the Pod, after the admission of service accounts.
fn only_the_controller_has_credentials(pod: &PodSpec) {
    let container = |name: &str| {
        let mut containers = pod.containers.iter();
        let found = containers.find(|container| container.name == name);
        found.unwrap_or_else(|| panic!("no container {name}"))
    };
    assert_eq!(pod.containers.len(), 2);
    let volumes = pod.volumes.iter().flatten();
    let (projected, others): (Vec<_>, Vec<_>) =
        volumes.partition(|volume| volume.projected.is_some());
    // One volume, and it is the only way to any of them.
    let [credentials] = projected[..] else {
        panic!("{} projected volumes", projected.len());
    };
    assert!(others.iter().all(|volume| volume.secret.is_none()));
    let sources = credentials
        .projected
        .as_ref()
        .and_then(|p| p.sources.as_ref());
    let sources: Vec<_> = sources.into_iter().flatten().collect();
    let has = |what: fn(&VolumeProjection) -> bool| sources.iter().any(|source| what(source));
    assert!(
        has(|source| source.service_account_token.is_some()),
        "the token"
    );
    assert!(has(|source| source.config_map.is_some()), "the CA");
    assert!(has(|source| source.downward_api.is_some()), "the namespace");
    let mounts = |name: &str| {
        let mounts = container(name).volume_mounts.iter().flatten();
        mounts.map(|mount| mount.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(mounts("webhook"), ["tls", "policy"]);
    assert_eq!(mounts("controller"), ["tls", "policy", &credentials.name]);
    let mut mounted = container("controller").volume_mounts.iter().flatten();
    let place = mounted.find(|mount| mount.name == credentials.name);
    let place = place.map(|mount| mount.mount_path.as_str());
    assert_eq!(place, Some("/var/run/secrets/kubernetes.io/serviceaccount"));
}

/// A cluster is never left with a webhook that refuses all and a gate that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_first_are_the_webhooks() {
    let cluster = Cluster::start().await.expect("a cluster");
    let manifests = root().join("manifests");
    let manifests = manifests.to_string_lossy();
    let apply = cluster.run_kubectl(&["apply", "-k", &manifests]);
    apply.expect("everything applies");
    let deleted = cluster.run_kubectl(&["delete", "-k", &manifests, "--wait=false"]);
    let deleted = deleted.expect("everything is deleted");
    let first: Vec<_> = deleted.lines().take(2).collect();
    for webhook in [
        "mutatingwebhookconfiguration",
        "validatingwebhookconfiguration",
    ] {
        assert!(
            first.iter().any(|line| line.starts_with(webhook)),
            "{deleted}"
        );
    }
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
