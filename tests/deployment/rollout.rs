//! Rolling updates and the loss of a Pod, under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use lockstep_envtest::eventually_within;

use crate::installation::{create_credentials, install_by, wait_for_pods};
use crate::kustomize::apply_base;
use crate::load::{Load, ResponseCounts};
use crate::site::{NAMESPACE, PODS, Site};

const ROLLOUTS: usize = 2;

pub async fn under_load(site: &Site) {
    install_by(site, apply_base).await;
    create_credentials(site, "default").await;
    let load = Load::start(site.cluster()).await;
    let started = Instant::now();
    for _ in 0..ROLLOUTS {
        site.kubectl(&["rollout", "restart", "deployment/lockstep", "-n", NAMESPACE]);
        wait_for_pods(site, NAMESPACE, "deployment/lockstep");
    }
    let pods: Api<Pod> = Api::namespaced(site.cluster().client(), NAMESPACE);
    let pods = pods.list(&ListParams::default()).await.expect("a list");
    let running = pods.items.iter();
    let mut running = running.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let lost = running.next().and_then(|pod| pod.metadata.name.clone());
    let lost = lost.expect("a Pod");
    let rolled_out = Instant::now();
    let now = ["--force", "--grace-period=0"];
    site.kubectl(&[&["delete", "pod", &lost, "-n", NAMESPACE], &now[..]].concat());
    wait_for_pods(site, NAMESPACE, "deployment/lockstep");
    let counts = stop(site, load).await;
    for (at, what) in counts.all_unexpected() {
        let after = at.checked_duration_since(rolled_out);
        println!("{after:?} after the rolling updates: {what}");
    }
    report(
        &format!("{ROLLOUTS} rolling updates and a forced deletion"),
        started.elapsed(),
        &counts,
    );
}

/// Fewer requests prove too little.
const REQUESTS: u64 = 1_000;

/// Stops the load when enough requests have been sent, some of them after the last change.
pub async fn stop(site: &Site, load: Load) -> Arc<ResponseCounts> {
    let enough = REQUESTS.max(load.counts().requests() + REQUESTS / 5);
    let more = eventually_within(PODS, "more requests", async || {
        (load.counts().requests() >= enough).then_some(())
    });
    let more = more.await;
    more.unwrap_or_else(|error| site.fail(&error.to_string()));
    load.stop().await
}

/// Prints the number of requests, and fails if a response was wrong.
pub fn report(what: &str, took: Duration, counts: &ResponseCounts) {
    println!(
        "{what} in {:.0} s: {} requests, unexpected: {:?}",
        took.as_secs_f64(),
        counts.requests(),
        counts.unexpected()
    );
    assert!(counts.unexpected().is_empty());
}
