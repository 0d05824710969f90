//! Load while replicas are restarted and killed.

use std::time::{Duration, Instant};

use lockstep_envtest::eventually;

use crate::block_on;
use crate::load::Load;
use crate::testbed::Testbed;

pub fn ten_rolling_restarts() {
    block_on(async {
        // Three Pods: as in a rollout, the new replica is ready before an old one is terminated.
        let mut testbed = Testbed::start(3, &["--shutdown-delay=2s"], &[]).await;
        let load = Load::start(&testbed.cluster).await;
        let started = Instant::now();
        let mut running = [0, 1];
        let mut free = 2;
        for _ in 0..10 {
            for slot in &mut running {
                testbed.fleet.start(free).expect("the process starts");
                testbed.ready(free).await;
                let ended = testbed.fleet.terminate(*slot).await;
                ended.unwrap_or_else(|error| panic!("{error}"));
                std::mem::swap(slot, &mut free);
            }
        }
        let took = started.elapsed();
        let counts = load.stop().await;
        println!(
            "10 rolling restarts of 2 replicas in {:.0} s: {} requests, unexpected: {:?}",
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

/// Errors of the API server if a connection breaks while it waits for the response.
const BROKEN: [&str; 5] = [
    "EOF",
    "connection reset",
    "broken pipe",
    "closed network connection",
    // Error of Go's HTTP client if the connection is closed just as the request takes it.
    "server closed idle connection",
];

/// Error of the API server if it dials a replica that has exited. It cannot know this until the `EndpointSlice` is
/// updated.
const REFUSED: &str = "connection refused";

pub fn one_is_killed_thirty_times() {
    block_on(async {
        let mut testbed = Testbed::start(2, &[], &[]).await;
        let load = Load::start(&testbed.cluster).await;
        let mut kills = Vec::new();
        for reconciliation in 0..30 {
            let index = reconciliation % 2;
            let before = load.counts().requests();
            eventually("requests through both replicas", async || {
                (load.counts().requests() > before + 30).then_some(())
            })
            .await
            .expect("the load continues");
            // Recorded before the kill, because a request can fail before this process continues.
            kills.push(Instant::now());
            testbed.fleet.webhook(index).kill();
            eventually("the removal of the endpoint", async || {
                (!testbed.fleet.is_ready(index)).then_some(())
            })
            .await
            .expect("the endpoint is removed");
            testbed
                .fleet
                .start_webhook(index)
                .expect("the process restarts");
            testbed.ready(index).await;
        }
        let counts = load.stop().await;
        let (mut broken, mut denied, mut other) = (0, 0, Vec::new());
        for (when, what) in counts.all_unexpected() {
            let just_killed = kills.iter().any(|kill| {
                let since = when.saturating_duration_since(*kill);
                when >= *kill && since < Duration::from_secs(1)
            });
            if just_killed && what.contains(REFUSED) {
                denied += 1;
            } else if just_killed && BROKEN.iter().any(|broken| what.contains(broken)) {
                broken += 1;
            } else {
                other.push(what);
            }
        }
        println!(
            "30 kills: {} requests, {broken} on a connection that broke, {denied} to a dead address before \
             its EndpointSlice was updated, other: {other:?}",
            counts.requests()
        );
        assert!(
            counts.requests() > 1_000,
            "too few requests to prove anything"
        );
        assert!(other.is_empty());
    });
}
