//! `lockstep status`: what an installation does, with the problems first.

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lockstep_certs::CertificateAuthority;
use lockstep_envtest::eventually;
use serde_json::{Value, json};

use crate::env::{EnvOptions, TestEnv, database};
use crate::uninstall::{lockstep, text};

/// Port on which the controller serves its metrics on all addresses.
pub fn metrics_address() -> (String, u16) {
    // No packet is sent: the system only selects the address of this machine.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.connect("192.0.2.1:9").expect("a network");
    let address = socket.local_addr().expect("an address").ip().to_string();
    (address, lockstep_envtest::free_port())
}

/// Creates the Pod of the leader, whose process runs outside of the cluster.
pub fn create_leader_pod(env: &TestEnv, address: &str, port: u16) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "pod-0", "namespace": "lockstep-system",
            "labels": {"app.kubernetes.io/name": "lockstep-controller", "app.kubernetes.io/part-of": "lockstep"},
        },
        "spec": {
            "nodeName": "this-machine",
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "controller", "image": "lockstep:test",
                "ports": [{"name": "metrics", "containerPort": port}],
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    });
    env.kubectl_apply(&pod).expect("a Pod");
    let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}}).to_string();
    let patch = [
        "patch",
        "pod",
        "pod-0",
        "-n",
        "lockstep-system",
        "--subresource=status",
    ];
    env.kubectl(&[&patch[..], &["--type=merge", "-p", &status]].concat())
        .expect("the status");
}

/// The end of a controller is a handover at first, and a problem if no other one follows.
async fn the_last_controller_ends(env: &mut TestEnv) {
    let controller = env.installation.controller();
    controller.terminate().expect("a signal");
    controller.ended().await;
    let admin = env.cluster.kubeconfig();
    let found = report(&admin);
    assert_eq!(found["problems"], json!([]), "another one may follow");
    assert_eq!(found["leader"]["handover"], true);
    expire_lease(env);
    let (code, shown) = status(&admin);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("no controller is the leader"), "{shown}");
}

/// Makes the last renewal of the Lease older than its duration.
fn expire_lease(env: &TestEnv) {
    let old = json!({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}).to_string();
    let lease = [
        "patch",
        "lease",
        "lockstep-controller",
        "-n",
        "lockstep-system",
    ];
    env.kubectl(&[&lease[..], &["--type=merge", "-p", &old]].concat())
        .expect("the Lease is patched");
}

pub fn status(kubeconfig: &Path) -> (Option<i32>, String) {
    let output = lockstep(kubeconfig, &["status"]);
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code(), shown)
}

fn report(kubeconfig: &Path) -> Value {
    let output = lockstep(kubeconfig, &["status", "--output=json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_installation_is_told_from_each_problem() {
    let (address, port) = metrics_address();
    let bind = format!("--health-probe-bind-address=0.0.0.0:{port}");
    let mut env = TestEnv::start_with(EnvOptions {
        controller_args: vec![bind],
        workloads: true,
        ..EnvOptions::default()
    })
    .await;
    env.cluster.add_node("node").await.expect("a node");
    create_leader_pod(&env, &address, port);
    env.kubectl_apply(&database("orders")).expect("stored");
    env.condition("orders", "Ready", "True").await;

    let admin = env.cluster.kubeconfig();
    let mut last = String::new();
    eventually("a healthy installation", async || {
        let (code, shown) = status(&admin);
        last = shown;
        (code == Some(0)).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&format!("{error}: {last}")));
    for part in [
        "healthy",
        "lockstep:0.1.0",
        "2/2",
        "in sync",
        "Fail",
        "pod-0",
        "clouddatabase 0",
    ] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let found = report(&admin);
    assert_eq!(found["problems"], json!([]));
    assert_eq!(found["leader"]["holder"], "pod-0");
    assert_eq!(found["crds"][0]["state"], "in-sync");
    assert_eq!(found["objects"][0]["objects"]["ready"], 1);

    // A user without rights sees that, and no problem.
    env.kubectl(&["create", "serviceaccount", "guest"])
        .expect("an account");
    let guest = env
        .cluster
        .service_account_kubeconfig("default", "guest", None)
        .await;
    let (code, shown) = status(&guest.expect("a kubeconfig"));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.matches("unknown (forbidden)").count() >= 7, "{shown}");

    // Nothing repairs what follows.
    the_last_controller_ends(&mut env).await;

    let old = SystemTime::now() - Duration::from_hours(48);
    let day = Duration::from_hours(24);
    let ca = CertificateAuthority::generate(day, old.into()).expect("a CA");
    let pair = ca
        .sign(&["webhook".to_owned()], day, old.into())
        .expect("a pair");
    let data = json!({"stringData": {"tls.crt": pair.certificate}}).to_string();
    let patch = [
        "patch",
        "secret",
        "lockstep-webhook-tls",
        "-n",
        "lockstep-system",
    ];
    env.kubectl(&[&patch[..], &["--type=merge", "-p", &data]].concat())
        .expect("patched");
    let (code, shown) = status(&admin);
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("the serving certificate expired at"),
        "{shown}"
    );

    let description = "/spec/versions/0/schema/openAPIV3Schema/description";
    let other = json!([{"op": "add", "path": description, "value": "another release"}]).to_string();
    let patch = [
        "patch",
        "crd",
        "clouddatabases.database.example.com",
        "--type=json",
        "-p",
    ];
    env.kubectl(&[&patch[..], &[&other]].concat())
        .expect("patched");
    let (_, shown) = status(&admin);
    assert!(shown.contains("is not the one of this program"), "{shown}");

    env.kubectl(&["delete", "validatingwebhookconfiguration", "lockstep"])
        .expect("deleted");
    let found = report(&admin);
    let problems = found["problems"].to_string();
    assert!(
        problems.contains("ValidatingWebhookConfiguration lockstep does not exist"),
        "{problems}"
    );
    assert_eq!(
        found["problems"].as_array().map(Vec::len),
        Some(4),
        "{problems}"
    );
}
