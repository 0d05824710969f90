//! A dependency of the controller is missing: controller and webhook keep running.

use lockstep_envtest::{Cluster, Moto, eventually};

use crate::env::{EnvOptions, TestEnv, database, root};
use crate::standalone_webhook::plain_get;
use crate::tcp_proxy::TcpProxy;
use crate::webhook::WebhookClient;

#[tokio::test(flavor = "multi_thread")]
async fn without_its_crd_the_controller_waits_and_the_webhook_validates() {
    let mut env = TestEnv::start().await;
    let webhook = WebhookClient::of(&env).await;
    let crd = root().join("manifests/config/crds/clouddatabases.yaml");
    let crd = crd.to_string_lossy();
    let name = "clouddatabases.database.example.com";
    let allow = ["annotate", "crd", name, "lockstep.dev/allow-deletion=true"];
    env.kubectl(&allow).expect("the CRD is annotated");
    env.kubectl(&["delete", "-f", &crd])
        .expect("the CRD is deleted");
    // The kind of the admission probe no longer exists. The label makes the controller send a new probe.
    let url = env.installation.controller_health_url();
    env.kubectl(&[
        "label",
        "validatingwebhookconfiguration",
        "lockstep",
        "looked=at",
    ])
    .expect("the configuration is labelled");
    eventually("an admission probe that fails", async || {
        let metrics = env.metrics(&url).await;
        let none = "lockstep_webhook_probes_total{result=\"failed\"} 0\n";
        (!metrics.contains(none)).then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(env.installation.controller().exit_status().is_none());
    eventually(
        "the failure of the controller's readiness probe",
        async || {
            let unready = readiness(&url).await;
            let why = "failed because the kind does not exist: apply the CRD clouddatabases.database.example.com";
            (unready.contains(" 503 ") && unready.contains(why)).then_some(())
        },
    )
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    let mut invalid = database("orders");
    invalid["spec"]["credentials"]["username"] = "user".into();
    let result = webhook.review("/validate", &invalid, None).await;
    assert_eq!(result["allowed"], false);

    env.kubectl(&["apply", "-f", &crd])
        .expect("the CRD is applied");
    eventually("the serving of the kind", async || {
        env.kubectl_apply(&database("orders")).ok()
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    env.condition("orders", "Ready", "True").await;
    assert!(readiness(&url).await.contains(" 200 "));
    assert!(env.installation.controller().exit_status().is_none());
}

async fn readiness(url: &str) -> String {
    let address = url.trim_start_matches("http://");
    plain_get(address, "/readyz").await.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_api_server_the_controller_gives_up_leadership_and_regains_it_later() {
    let cluster = Cluster::start_without_workloads().await.expect("a cluster");
    let moto = Moto::start().await.expect("moto");
    let server = cluster.server().trim_start_matches("https://");
    let wire = TcpProxy::to(server.parse().expect("an address")).await;
    let options = EnvOptions {
        controller_server: Some(format!("https://{}", wire.address())),
        ..EnvOptions::default()
    };
    let mut env = TestEnv::install(cluster, moto, options).await;
    let webhook = WebhookClient::of(&env).await;
    env.kubectl_apply(&database("before")).expect("stored");
    env.condition("before", "Ready", "True").await;

    // For longer than the lease duration: another replica may lead by now.
    wire.cut();
    eventually("the release of leadership", async || {
        let log = env.installation.controller().output();
        log.contains("stopping all work").then_some(())
    })
    .await
    .unwrap_or_else(|error| env.fail(&error.to_string()));
    assert!(env.installation.controller().exit_status().is_none());
    // The webhook needs neither the controller nor the controller's connection to the API server.
    let mut invalid = database("orders");
    invalid["spec"]["credentials"]["username"] = "user".into();
    assert_eq!(
        webhook.review("/validate", &invalid, None).await["allowed"],
        false
    );
    env.kubectl_apply(&database("meanwhile")).expect("stored");
    let rejection = env
        .kubectl_apply(&invalid)
        .expect_err("the object is denied");
    assert!(rejection.contains("[username-reserved]"), "{rejection}");

    wire.mend();
    env.condition("meanwhile", "Ready", "True").await;
    assert!(env.installation.controller().exit_status().is_none());
    assert_eq!(env.instances().await.len(), 2);
}
