//! `failurePolicy` becomes `Fail` after an admission probe was denied, and stays `Fail`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lockstep_envtest::{Cluster, eventually, stays, wait_until_fail_closed};
use rds_simulator::Simulator;

use crate::env::{EnvOptions, TestEnv, database, root, validating_webhook};

async fn env(controller_args: &[&str]) -> TestEnv {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let aws = Simulator::start().await.expect("a simulator");
    let options = EnvOptions {
        controller_args: controller_args.iter().map(ToString::to_string).collect(),
        ..EnvOptions::default()
    };
    TestEnv::install(cluster, aws, options).await
}

fn policy(env: &TestEnv) -> String {
    validating_webhook(&env.cluster, "failurePolicy")
}

/// Terminates the controller with SIGTERM, as a kubelet does.
async fn end_controller(env: &mut TestEnv) {
    let controller = env.installation.controller();
    controller.terminate().expect("a signal");
    eventually("the exit", async || controller.exit_status())
        .await
        .expect("the process ends");
}

async fn becomes(env: &TestEnv, expected: &str) {
    let turned = eventually(expected, async || (policy(env) == expected).then_some(()));
    turned
        .await
        .unwrap_or_else(|error| env.fail(&error.to_string()));
}

fn invalid(name: &str) -> serde_json::Value {
    let mut invalid = database(name);
    invalid["spec"]["credentials"]["username"] = "user".into();
    invalid
}

/// Manifest of the validating webhook, with the port of the webhook in this test.
fn manifest(env: &TestEnv) -> PathBuf {
    let text = fs::read_to_string(root().join("manifests/config/validating-webhook.yaml"));
    let port = format!("port: {}", env.installation.webhook_port());
    let text = text.expect("a manifest");
    assert!(text.contains("port: 443") && text.contains("failurePolicy: Ignore"));
    let path = env.cluster.directory().join("validating-webhook.yaml");
    fs::write(&path, text.replace("port: 443", &port)).expect("a file");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_the_manifests_again_ends_with_failure_policy_fail_and_causes_no_conflict() {
    let env = TestEnv::start().await;
    let path = manifest(&env);
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
        let applied = env.kubectl(arguments);
        applied.unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        wait_until_fail_closed(&env.cluster)
            .await
            .expect("`failurePolicy` becomes `Fail` again");
    }
    // If two field managers apply the same file, neither gets a conflict with a field manager of Lockstep.
    if let Err(error) = env.kubectl(&by_another) {
        assert!(!error.contains("lockstep-"), "{error}");
    }
    wait_until_fail_closed(&env.cluster)
        .await
        .expect("`failurePolicy` becomes `Fail` again");
    let rejection = env.kubectl_apply(&invalid("orders"));
    let rejection = rejection.expect_err("the webhook denies the object");
    assert!(rejection.contains("[username-reserved]"), "{rejection}");
    // The webhook logs the denial of the object, and not those of the probes.
    let output = env.installation.output();
    assert!(output.contains("username-reserved"), "{output}");
    assert!(!output.contains("\"admission-probe\""), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_policy_stays_ignore_until_a_probe_is_denied_and_stays_fail_when_the_webhook_is_down()
 {
    let mut env = env(&["--webhook-probe-interval=200ms"]).await;
    // The webhook is down: requests that cannot be validated are denied as long as this lasts.
    env.installation.webhook().kill();
    let rejection = env.kubectl_apply(&database("orders"));
    let rejection = rejection.expect_err("the webhook is down");
    assert!(rejection.contains("failed calling webhook"), "{rejection}");
    stays(Duration::from_secs(3), "the failure policy", async || {
        policy(&env)
    })
    .await;
    assert_eq!(policy(&env), "Fail");

    // Installed again without a running webhook: requests that cannot be validated are admitted, as before the
    // installation.
    let path = manifest(&env);
    let path = path.to_string_lossy();
    env.kubectl(&["delete", "-f", &path])
        .expect("the configuration is deleted");
    env.kubectl(&["apply", "-f", &path])
        .expect("the configuration is created");
    let url = env.installation.controller_health_url();
    eventually("an admission probe that is admitted", async || {
        let metrics = env.metrics(&url).await;
        let none = "lockstep_webhook_probes_total{result=\"allowed\"} 0\n";
        (!metrics.contains(none)).then_some(())
    })
    .await
    .expect("the metric is updated");
    assert_eq!(policy(&env), "Ignore");
    let metrics = env.metrics(&url).await;
    assert!(
        metrics.contains("lockstep_webhook_fail_closed 0"),
        "{metrics}"
    );
    env.kubectl_apply(&database("orders")).expect("stored");

    env.installation
        .start_webhook()
        .expect("the process starts");
    becomes(&env, "Fail").await;
    eventually("the update of the metric", async || {
        let metrics = env.metrics(&url).await;
        metrics
            .contains("lockstep_webhook_fail_closed 1")
            .then_some(())
    })
    .await
    .expect("the metric is updated");
    env.kubectl_apply(&invalid("bills"))
        .expect_err("the object is denied");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_policy_becomes_ignore_when_the_webhook_deployment_is_scaled_to_zero() {
    let options = EnvOptions {
        workloads: true,
        ..EnvOptions::default()
    };
    let mut env = TestEnv::start_with(options).await;
    end_controller(&mut env).await;
    assert_eq!(policy(&env), "Fail", "another replica is expected");

    env.installation
        .start_controller()
        .expect("the process starts");
    let scale = [
        "scale",
        "deployment/lockstep",
        "-n",
        "lockstep-system",
        "--replicas=0",
    ];
    env.kubectl(&scale).expect("the Deployment is scaled");
    let leading = async || {
        let output = env.installation.output();
        (output.matches("became the leader").count() == 2).then_some(())
    };
    eventually("the second election of the leader", leading)
        .await
        .expect("the controller becomes the leader");
    end_controller(&mut env).await;
    assert_eq!(policy(&env), "Ignore");
    env.installation.webhook().kill();
    env.kubectl_apply(&database("orders")).expect("stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_disarm_without_replicas_the_failure_policy_is_ignore_while_no_replica_is_available() {
    let mut env = env(&[
        "--webhook-probe-interval=200ms",
        "--fail-open-when-unavailable",
    ])
    .await;
    assert_eq!(policy(&env), "Fail");
    env.installation.webhook().kill();
    becomes(&env, "Ignore").await;
    env.kubectl_apply(&database("orders")).expect("stored");
    env.installation
        .start_webhook()
        .expect("the process starts");
    becomes(&env, "Fail").await;
    env.kubectl_apply(&invalid("bills"))
        .expect_err("the object is denied");
}
