//! What the controller needs is taken away: it goes on, and so does the gate.

use control_plane::eventually;

use crate::gate::Gate;
use crate::world::{World, database, root};

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
    assert!(world.installation.controller().exit_status().is_none());
}
