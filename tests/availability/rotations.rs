//! Load while the certificates are rotated.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use lockstep_envtest::{eventually, eventually_within};
use serde_json::json;

use crate::block_on;
use crate::load::Load;
use crate::testbed::Testbed;

/// Short delays: a change reaches the API servers of this cluster within milliseconds.
const QUICK: [&str; 2] = ["--ca-propagation-delay=1s", "--cert-check-interval=300ms"];

fn secrets(testbed: &Testbed) -> Api<Secret> {
    Api::namespaced(testbed.cluster.client(), "lockstep-system")
}

/// Rotation phase, derived from the keys in the Secret, and the private key of the CA that signs.
async fn observe(testbed: &Testbed) -> (&'static str, Vec<u8>) {
    let secret = secrets(testbed).get("lockstep-webhook-tls").await;
    let data = secret.expect("the Secret").data.unwrap_or_default();
    let text = |name: &str| data.get(name).map(|bytes| bytes.0.clone());
    let trusted = String::from_utf8(text("ca.crt").unwrap_or_default()).expect("PEM");
    let phase = match (text("next-ca.key"), trusted.matches("BEGIN").count()) {
        (Some(_), _) => "introducing",
        (None, 1) => "stable",
        (None, _) => "retiring",
    };
    (phase, text("ca.key").unwrap_or_default())
}

async fn request_a_new_ca(testbed: &Testbed) {
    let patch = json!({"metadata": {"annotations": {"certs.lockstep.dev/rotate-ca": "now"}}});
    let annotated = secrets(testbed)
        .patch(
            "lockstep-webhook-tls",
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await;
    annotated.expect("the Secret is annotated");
}

/// Requests a new CA and waits until it is the only one.
async fn rotate(testbed: &Testbed) {
    let (_, before) = observe(testbed).await;
    request_a_new_ca(testbed).await;
    eventually("the rotation of the CA", async || {
        let (phase, signing) = observe(testbed).await;
        (phase == "stable" && signing != before).then_some(())
    })
    .await
    .unwrap_or_else(|error| panic!("{error}"));
}

pub fn twenty() {
    block_on(async {
        let testbed = Testbed::start(2, &[], &QUICK).await;
        let load = Load::start(&testbed.cluster).await;
        let started = Instant::now();
        for _ in 0..20 {
            rotate(&testbed).await;
        }
        let took = started.elapsed();
        let counts = load.stop().await;
        println!(
            "20 rotations of CA and certificate in {:.0} s: {} requests, unexpected: {:?}",
            took.as_secs_f64(),
            counts.requests(),
            counts.unexpected()
        );
        assert!(
            counts.requests() > 1_000,
            "too few requests to prove anything"
        );
        assert!(counts.unexpected().is_empty());
    });
}

/// Kills the controller that rotates the certificates as soon as a phase is reached. The other replica continues, and
/// the killed one is started again.
pub fn keepers_are_killed() {
    block_on(async {
        let mut testbed = Testbed::start(2, &[], &QUICK).await;
        let load = Load::start(&testbed.cluster).await;
        let mut seen = Vec::new();
        for reconciliation in 0..6 {
            let phase = ["introducing", "retiring", "stable"][reconciliation % 3];
            let (_, before) = observe(&testbed).await;
            request_a_new_ca(&testbed).await;
            eventually_within(Duration::from_mins(1), phase, async || {
                let (now, signing) = observe(&testbed).await;
                let has_signed = signing != before;
                (now == phase && (phase == "introducing" || has_signed)).then_some(())
            })
            .await
            .unwrap_or_else(|error| panic!("{error}"));
            let leader = leader(&testbed);
            testbed.fleet.controller(leader).kill();
            seen.push(format!("{phase}: {}", testbed.fleet.name(leader)));
            // The rotation waits for nothing except the certificate that the webhook of this replica serves.
            testbed
                .fleet
                .start_controller(leader)
                .expect("the process restarts");
            eventually("the rotation of the CA", async || {
                let (phase, signing) = observe(&testbed).await;
                (phase == "stable" && signing != before).then_some(())
            })
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        }
        let counts = load.stop().await;
        println!(
            "killed in {seen:?}: {} requests, unexpected: {:?}",
            counts.requests(),
            counts.unexpected()
        );
        assert!(counts.unexpected().is_empty());
    });
}

/// Index of the replica that has done the last step of a rotation.
fn leader(testbed: &Testbed) -> usize {
    let steps = |index: usize| {
        let log = testbed.fleet.log_of_controller(index);
        let last = log.lines().rfind(|line| line.contains("phase"));
        last.map(str::to_owned).unwrap_or_default()
    };
    // Each line of the log begins with its time.
    usize::from(steps(1) > steps(0))
}
