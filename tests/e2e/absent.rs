//! What the controller needs is taken away: it goes on, and so does the gate.

use control_plane::{Cluster, Moto, eventually};

use crate::alone::plain_get;
use crate::gate::Gate;
use crate::wire::Wire;
use crate::world::{Detours, World, database, root};

#[tokio::test(flavor = "multi_thread")]
async fn without_its_crd_the_controller_waits_and_the_gate_judges() {
    let mut world = World::start().await;
    let gate = Gate::of(&world).await;
    let crd = root().join("manifests/crd-clouddatabases.yaml");
    let crd = crd.to_string_lossy();
    world
        .kubectl(&["delete", "-f", &crd])
        .expect("it is deleted");
    // The canary has no kind any more; the controller has looked and found nothing.
    let url = world.installation.controller_health_url();
    world
        .kubectl(&[
            "label",
            "validatingwebhookconfiguration",
            "lockstep",
            "looked=at",
        ])
        .expect("it is touched");
    eventually("a canary that goes nowhere", async || {
        let metrics = world.metrics(&url).await;
        metrics
            .contains("lockstep_gate_canaries_total{outcome=\"failed\"}")
            .then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    assert!(world.installation.controller().exit_status().is_none());
    eventually("the controller not being ready", async || {
        let unready = readiness(&url).await;
        let why = "failed because the kind does not exist: apply the CRD clouddatabases.database.example.com";
        (unready.contains(" 503 ") && unready.contains(why)).then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    let mut invalid = database("orders");
    invalid["spec"]["credentials"]["username"] = "user".into();
    let verdict = gate.review("/validate", &invalid, None).await;
    assert_eq!(verdict["allowed"], false);

    world.kubectl(&["apply", "-f", &crd]).expect("it is back");
    eventually("the kind being served", async || {
        world.kubectl_apply(&database("orders")).ok()
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    world.condition("orders", "Ready", "True").await;
    assert!(readiness(&url).await.contains(" 200 "));
    assert!(world.installation.controller().exit_status().is_none());
}

async fn readiness(url: &str) -> String {
    let address = url.trim_start_matches("http://");
    plain_get(address, "/readyz").await.unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_api_server_the_controller_lays_down_its_lead_and_takes_it_up_again() {
    let cluster = Cluster::start().await.expect("a cluster");
    let moto = Moto::start(&cluster.logs()).await.expect("moto");
    let server = cluster.server().trim_start_matches("https://");
    let wire = Wire::to(server.parse().expect("an address")).await;
    let detours = Detours {
        controller_server: Some(format!("https://{}", wire.address())),
        ..Detours::default()
    };
    let mut world = World::install(cluster, moto, detours).await;
    let gate = Gate::of(&world).await;
    world.kubectl_apply(&database("before")).expect("stored");
    world.condition("before", "Ready", "True").await;

    // For longer than the lease: somebody else may lead by now.
    wire.cut();
    eventually("the lead being laid down", async || {
        let said = world.installation.controller().output();
        said.contains("stopping all work").then_some(())
    })
    .await
    .unwrap_or_else(|error| world.fail(&error.to_string()));
    assert!(world.installation.controller().exit_status().is_none());
    // The gate needs neither of them.
    let mut invalid = database("orders");
    invalid["spec"]["credentials"]["username"] = "user".into();
    assert_eq!(
        gate.review("/validate", &invalid, None).await["allowed"],
        false
    );
    world.kubectl_apply(&database("meanwhile")).expect("stored");
    let refused = world.kubectl_apply(&invalid).expect_err("it is judged");
    assert!(refused.contains("[username-reserved]"), "{refused}");

    wire.mend();
    world.condition("meanwhile", "Ready", "True").await;
    assert!(world.installation.controller().exit_status().is_none());
    assert_eq!(world.instances().await.len(), 2);
}
