//! `failurePolicy` becomes `Fail` after an admission probe was denied, and stays `Fail`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use control_plane::{Cluster, Moto, eventually, stays, wait_until_fail_closed};

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

/// Terminates the controller with SIGTERM, as a kubelet does.
async fn end_controller(world: &mut World) {
    let controller = world.installation.controller();
    controller.terminate().expect("a signal");
    eventually("the exit", async || controller.exit_status())
        .await
        .expect("the process ends");
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

/// Manifest of the validating webhook, with the port of the webhook in this test.
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
async fn applying_the_manifests_again_ends_with_failure_policy_fail_and_causes_no_conflict() {
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
    // The first server-side apply takes over the fields of the client-side apply that installed everything.
    for arguments in [&client_side[..], &client_side, &server_side, &server_side] {
        let applied = world.kubectl(arguments);
        applied.unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        wait_until_fail_closed(&world.cluster)
            .await
            .expect("`failurePolicy` becomes `Fail` again");
    }
    // If two field managers apply the same file, neither gets a conflict with a field manager of Lockstep.
    if let Err(error) = world.kubectl(&by_another) {
        assert!(!error.contains("lockstep-"), "{error}");
    }
    wait_until_fail_closed(&world.cluster)
        .await
        .expect("`failurePolicy` becomes `Fail` again");
    let refusal = world.kubectl_apply(&invalid("orders"));
    let refusal = refusal.expect_err("the webhook denies the object");
    assert!(refusal.contains("[username-reserved]"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_policy_stays_ignore_until_a_probe_is_denied_and_stays_fail_when_the_webhook_is_down()
 {
    let mut world = world(&["--webhook-probe-interval=200ms"]).await;
    // The webhook is down: requests that cannot be validated are denied as long as this lasts.
    world.installation.webhook().kill();
    let refusal = world.kubectl_apply(&database("orders"));
    let refusal = refusal.expect_err("the webhook is down");
    assert!(refusal.contains("failed calling webhook"), "{refusal}");
    stays(Duration::from_secs(3), "the failure policy", async || {
        policy(&world)
    })
    .await;
    assert_eq!(policy(&world), "Fail");

    // Installed again without a running webhook: requests that cannot be validated are admitted, as before the
    // installation.
    let path = manifest(&world);
    let path = path.to_string_lossy();
    world
        .kubectl(&["delete", "-f", &path])
        .expect("the configuration is deleted");
    world
        .kubectl(&["apply", "-f", &path])
        .expect("the configuration is created");
    let url = world.installation.controller_health_url();
    eventually("an admission probe that is admitted", async || {
        let metrics = world.metrics(&url).await;
        metrics
            .contains("lockstep_webhook_probes_total{result=\"allowed\"}")
            .then_some(())
    })
    .await
    .expect("the metric is updated");
    assert_eq!(policy(&world), "Ignore");
    let metrics = world.metrics(&url).await;
    assert!(
        metrics.contains("lockstep_webhook_fail_closed 0"),
        "{metrics}"
    );
    world.kubectl_apply(&database("orders")).expect("stored");

    world
        .installation
        .start_webhook()
        .expect("the process starts");
    becomes(&world, "Fail").await;
    eventually("the update of the metric", async || {
        let metrics = world.metrics(&url).await;
        metrics
            .contains("lockstep_webhook_fail_closed 1")
            .then_some(())
    })
    .await
    .expect("the metric is updated");
    world
        .kubectl_apply(&invalid("bills"))
        .expect_err("the object is denied");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_policy_becomes_ignore_when_the_webhook_deployment_is_scaled_to_zero() {
    let mut world = World::start().await;
    end_controller(&mut world).await;
    assert_eq!(policy(&world), "Fail", "another replica is expected");

    world
        .installation
        .start_controller()
        .expect("the process starts");
    let scale = [
        "scale",
        "deployment/lockstep",
        "-n",
        "lockstep-system",
        "--replicas=0",
    ];
    world.kubectl(&scale).expect("the Deployment is scaled");
    let leading = async || {
        let output = world.installation.output();
        (output.matches("became the leader").count() == 2).then_some(())
    };
    eventually("the second election of the leader", leading)
        .await
        .expect("the controller becomes the leader");
    end_controller(&mut world).await;
    assert_eq!(policy(&world), "Ignore");
    world.installation.webhook().kill();
    world.kubectl_apply(&database("orders")).expect("stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_disarm_without_replicas_the_failure_policy_is_ignore_while_no_replica_is_available() {
    let mut world = world(&[
        "--webhook-probe-interval=200ms",
        "--fail-open-when-unavailable",
    ])
    .await;
    assert_eq!(policy(&world), "Fail");
    world.installation.webhook().kill();
    becomes(&world, "Ignore").await;
    world.kubectl_apply(&database("orders")).expect("stored");
    world
        .installation
        .start_webhook()
        .expect("the process starts");
    becomes(&world, "Fail").await;
    world
        .kubectl_apply(&invalid("bills"))
        .expect_err("the object is denied");
}
