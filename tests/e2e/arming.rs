//! The gate is relied on once it has been seen to refuse, and stays so.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use control_plane::{Cluster, Moto, eventually, stays, wait_until_armed};

use crate::world::{Detours, World, database, judging_webhook, root};

async fn world(controller_args: &[&str]) -> World {
    let cluster = Cluster::start().await.expect("a cluster");
    let moto = Moto::start(&cluster.logs()).await.expect("moto");
    let detours = Detours {
        controller_args: controller_args.iter().map(ToString::to_string).collect(),
        ..Detours::default()
    };
    World::install(cluster, moto, detours).await
}

fn policy(world: &World) -> String {
    judging_webhook(&world.cluster, "failurePolicy")
}

/// Ends the controller as a kubelet does.
async fn end_controller(world: &mut World) {
    let controller = world.installation.controller();
    controller.terminate().expect("a signal");
    eventually("its end", async || controller.exit_status())
        .await
        .expect("it ends");
}

async fn becomes(world: &World, expected: &str) {
    let turned = eventually(expected, async || (policy(world) == expected).then_some(()));
    turned
        .await
        .unwrap_or_else(|error| world.fail(&error.to_string()));
}

fn invalid(name: &str) -> serde_json::Value {
    let mut invalid = database(name);
    invalid["spec"]["credentials"]["username"] = "user".into();
    invalid
}

/// The manifest of the validating webhook, leading to where the gate is in this test.
fn manifest(world: &World) -> PathBuf {
    let text = fs::read_to_string(root().join("manifests/validating-webhook.yaml"));
    let port = format!("port: {}", world.installation.webhook_port());
    let text = text.expect("a manifest");
    assert!(text.contains("port: 443") && text.contains("failurePolicy: Ignore"));
    let path = world.cluster.directory().join("validating-webhook.yaml");
    fs::write(&path, text.replace("port: 443", &port)).expect("a file");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_the_manifests_again_ends_armed_and_meets_no_conflict() {
    let world = World::start().await;
    let path = manifest(&world);
    let path = path.to_string_lossy();
    let client_side = ["apply", "-f", &path];
    let server_side = ["apply", "--server-side", "-f", &path];
    let by_another = [
        "apply",
        "--server-side",
        "--field-manager=gitops",
        "-f",
        &path,
    ];
    // The first server-side apply takes over from the client-side one that installed everything.
    for arguments in [&client_side[..], &client_side, &server_side, &server_side] {
        let applied = world.kubectl(arguments);
        applied.unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        wait_until_armed(&world.cluster).await.expect("armed again");
    }
    // Of two who apply the same file, neither is told that we stand between them.
    if let Err(error) = world.kubectl(&by_another) {
        assert!(!error.contains("lockstep-"), "{error}");
    }
    wait_until_armed(&world.cluster).await.expect("armed again");
    let refusal = world.kubectl_apply(&invalid("orders"));
    let refusal = refusal.expect_err("the gate judges");
    assert!(refusal.contains("[username-reserved]"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_has_not_refused_is_not_relied_on_and_one_that_is_gone_stays_armed() {
    let mut world = world(&["--canary-every=200ms"]).await;
    // Gone: what cannot be judged is refused, for as long as that lasts.
    world.installation.webhook().kill();
    let refusal = world.kubectl_apply(&database("orders"));
    let refusal = refusal.expect_err("nobody judges");
    assert!(refusal.contains("failed calling webhook"), "{refusal}");
    stays(Duration::from_secs(3), "the failure policy", async || {
        policy(&world)
    })
    .await;
    assert_eq!(policy(&world), "Fail");

    // Installed anew without a gate: what cannot be judged is let through, as before the installation.
    let path = manifest(&world);
    let path = path.to_string_lossy();
    world.kubectl(&["delete", "-f", &path]).expect("it is gone");
    world.kubectl(&["apply", "-f", &path]).expect("it is there");
    let url = world.installation.controller_health_url();
    eventually("a canary that nobody refuses", async || {
        let metrics = world.metrics(&url).await;
        metrics
            .contains("lockstep_gate_canaries_total{outcome=\"admitted\"}")
            .then_some(())
    })
    .await
    .expect("it is counted");
    assert_eq!(policy(&world), "Ignore");
    let metrics = world.metrics(&url).await;
    assert!(metrics.contains("lockstep_gate_armed 0"), "{metrics}");
    world.kubectl_apply(&database("orders")).expect("stored");

    world.installation.start_webhook().expect("it starts");
    becomes(&world, "Fail").await;
    eventually("the metric", async || {
        let metrics = world.metrics(&url).await;
        metrics.contains("lockstep_gate_armed 1").then_some(())
    })
    .await
    .expect("it is counted");
    world.kubectl_apply(&invalid("bills")).expect_err("judged");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_replica_that_nobody_wants_any_more_disarms_the_gate() {
    let mut world = World::start().await;
    end_controller(&mut world).await;
    assert_eq!(policy(&world), "Fail", "another replica is on its way");

    world.installation.start_controller().expect("it starts");
    let scale = [
        "scale",
        "deployment/lockstep",
        "-n",
        "lockstep-system",
        "--replicas=0",
    ];
    world.kubectl(&scale).expect("it is scaled");
    let leading = async || {
        let output = world.installation.output();
        (output.matches("became the leader").count() == 2).then_some(())
    };
    eventually("the controller at work", leading)
        .await
        .expect("it leads");
    end_controller(&mut world).await;
    assert_eq!(policy(&world), "Ignore");
    world.installation.webhook().kill();
    world.kubectl_apply(&database("orders")).expect("stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_that_is_asked_for_a_gate_without_a_replica_is_disarmed() {
    let mut world = world(&["--canary-every=200ms", "--disarm-without-replicas"]).await;
    assert_eq!(policy(&world), "Fail");
    world.installation.webhook().kill();
    becomes(&world, "Ignore").await;
    world.kubectl_apply(&database("orders")).expect("stored");
    world.installation.start_webhook().expect("it starts");
    becomes(&world, "Fail").await;
    world.kubectl_apply(&invalid("bills")).expect_err("judged");
}
