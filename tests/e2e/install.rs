//! The committed manifests, installed on a real control plane.

use k8s_openapi::api::core::v1::{Pod, PodSpec, VolumeProjection};
use kube::api::{Api, ListParams};
use lockstep_envtest::{Cluster, eventually};

use crate::chart::{relative_base, split_overlay};
use crate::env::root;

/// Applies the kustomize bases in the order of the installation guide.
pub fn apply_manifests(cluster: &Cluster) {
    let manifests = root().join("manifests/config");
    for base in ["crds", "crd-protection", ""] {
        let base = manifests.join(base);
        let applied = cluster.run_kubectl(&["apply", "-k", &base.to_string_lossy()]);
        applied.expect("everything applies");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pods_of_the_manifests_satisfy_restricted_pod_security_and_run() {
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node-0").await.expect("a node");
    apply_manifests(&cluster);
    let rollout = [
        "rollout",
        "status",
        "deployment/lockstep",
        "-n",
        "lockstep-system",
        "--timeout=60s",
    ];
    cluster
        .run_kubectl(&rollout)
        .expect("kwok simulates the Pods");
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "lockstep-system");
    let pods = pods.list(&ListParams::default()).await.expect("Pods");
    assert_eq!(pods.items.len(), 2);
    for pod in pods {
        only_the_controller_has_credentials(&pod.spec.expect("a Pod has a spec"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_split_component_the_webhook_pods_contain_only_the_serving_certificate() {
    let cluster = Cluster::start().await.expect("a cluster");
    cluster.add_node("node-0").await.expect("a node");
    let overlay = split_overlay(&cluster);
    cluster
        .run_kubectl(&["apply", "-k", &overlay.to_string_lossy()])
        .expect("everything applies");
    for deployment in ["deployment/lockstep", "deployment/lockstep-controller"] {
        let rollout = [
            "rollout",
            "status",
            deployment,
            "-n",
            "lockstep-system",
            "--timeout=60s",
        ];
        cluster
            .run_kubectl(&rollout)
            .expect("kwok simulates the Pods");
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "lockstep-system");
    let of_webhook = ListParams::default().labels("app.kubernetes.io/name=lockstep");
    let gates = pods.list(&of_webhook).await.expect("Pods");
    assert_eq!(gates.items.len(), 2);
    for pod in gates {
        let pod = pod.spec.expect("a Pod has a spec");
        assert_eq!(pod.containers.len(), 1);
        let volumes: Vec<_> = pod.volumes.into_iter().flatten().collect();
        assert!(volumes.iter().all(|volume| volume.projected.is_none()));
        let secrets: Vec<_> = volumes
            .iter()
            .filter_map(|volume| volume.secret.as_ref())
            .collect();
        let [secret] = secrets[..] else {
            panic!("{} Secrets", secrets.len());
        };
        let keys = secret.items.iter().flatten().map(|item| item.key.as_str());
        assert_eq!(keys.collect::<Vec<_>>(), ["tls.crt", "tls.key"]);
    }
    let of_controller = ListParams::default().labels("app.kubernetes.io/name=lockstep-controller");
    let controllers = pods.list(&of_controller).await.expect("Pods");
    assert_eq!(controllers.items.len(), 2);
    // Requests to the Service of the webhook never reach a controller.
    let selector = [
        "get",
        "service",
        "lockstep-webhook",
        "-n",
        "lockstep-system",
        "-o",
    ];
    let selector = [&selector[..], &["jsonpath={.spec.selector}"]].concat();
    let selector = cluster.run_kubectl(&selector).expect("the Service");
    assert_eq!(selector, r#"{"app.kubernetes.io/name":"lockstep"}"#);
}

/// Checks a Pod as the API server has stored it, after the admission of service accounts.
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
    // Only one volume contains credentials.
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
        "the token is missing"
    );
    assert!(
        has(|source| source.config_map.is_some()),
        "the CA is missing"
    );
    assert!(
        has(|source| source.downward_api.is_some()),
        "the namespace is missing"
    );
    let mounts = |name: &str| {
        let mounts = container(name).volume_mounts.iter().flatten();
        mounts.map(|mount| mount.name.as_str()).collect::<Vec<_>>()
    };
    // A ConfigMap with what RDS offers.
    let offers = "rds-catalogue";
    assert_eq!(mounts("webhook"), ["tls", "policy", offers]);
    let of_controller = ["tls", "policy", &credentials.name, offers];
    assert_eq!(mounts("controller"), of_controller);
    let mut mounted = container("controller").volume_mounts.iter().flatten();
    let mount_path = mounted.find(|mount| mount.name == credentials.name);
    let mount_path = mount_path.map(|mount| mount.mount_path.as_str());
    assert_eq!(
        mount_path,
        Some("/var/run/secrets/kubernetes.io/serviceaccount")
    );
}

/// If the webhook were deleted first, the remaining configurations would make the API server deny every request.
#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_configurations_are_deleted_first() {
    let cluster = Cluster::start().await.expect("a cluster");
    apply_manifests(&cluster);
    let manifests = root().join("manifests/config");
    let manifests = manifests.to_string_lossy();
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

/// Users with write access to the status could forge the last validated values, which the controller reads.
#[tokio::test(flavor = "multi_thread")]
async fn users_who_edit_databases_cannot_write_their_status() {
    let cluster = Cluster::start().await.expect("a cluster");
    apply_manifests(&cluster);
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
        eventually("the aggregation of the role", async || {
            may("patch", "").then_some(())
        })
        .await
        .expect("the role is aggregated");
        for verb in ["patch", "update"] {
            assert!(!may(verb, "status"), "{user} may {verb} the status");
        }
    }
}

/// The demo is the first command that a new user runs.
#[test]
fn the_demo_runs_to_its_end() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["dev", "--once"])
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{printed}{errors}");
    for line in [
        "admitted     examples/valid/20-production.yaml",
        "denied       examples/invalid/20-reserved-name.yaml",
        "[username-reserved]",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

/// The overlay of the guide, with the path of this repository.
#[tokio::test(flavor = "multi_thread")]
async fn the_overlay_of_the_guide_renders() {
    let guide = std::fs::read_to_string(root().join("docs/install.md")).expect("the guide");
    let (_, overlay) = guide.split_once("```yaml\n").expect("an overlay");
    let (overlay, _) = overlay.split_once("```").expect("its end");
    let cluster = Cluster::start().await.expect("a cluster");
    let folder = cluster.directory().join("overlay");
    std::fs::create_dir(&folder).expect("a folder");
    let overlay = overlay.replace("lockstep/manifests/config", &relative_base(&folder));
    std::fs::write(folder.join("kustomization.yaml"), overlay).expect("a file");
    let rendered = cluster.run_kubectl(&["kustomize", &folder.to_string_lossy()]);
    let rendered = rendered.expect("the overlay renders");
    for part in [
        "image: registry.example.com/lockstep:0.1.0",
        "AWS_REGION: eu-central-1",
        "eks.amazonaws.com/role-arn: arn:aws:iam::123456789012:role/lockstep",
    ] {
        assert!(rendered.contains(part), "{part}: {rendered}");
    }
}

#[test]
fn the_committed_manifests_are_current() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["manifests", "--check"])
        .arg(root().join("manifests/config"))
        .arg("--charts")
        .arg(root().join("manifests/chart"))
        .output()
        .expect("the program runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
