//! Sharding, on a real control plane: replicas are processes that are frozen, killed, cut off, stopped and added, while a
//! simulated external system records every call for an object.

mod api_proxy;
mod external_system;
mod faults;
mod fleet;
mod job;
mod replica;

use std::collections::BTreeSet;

use futures::future::join_all;
use lockstep_envtest::Cluster;
use lockstep_test::cluster_with;

use crate::sharding::faults::Fault;
use crate::sharding::fleet::Fleet;
use crate::sharding::job::Job;

/// Environment variable with the seeds of the test with random faults, separated by commas.
const SEEDS: &str = "LOCKSTEP_SHARDING_SEEDS";

/// Seeds that run at the same time.
const AT_ONCE: usize = 4;

/// Random faults of each seed, by default and for seeds that are chosen. Most of the time of a fault is waiting for Leases.
const FEW_FAULTS: usize = 3;
const FAULTS: usize = 6;

/// Not a test: the program of a replica, which the tests start as a process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests"]
async fn replica() {
    replica::run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_have_one_owner_at_a_time_while_replicas_come_and_go() {
    let chosen = std::env::var(SEEDS);
    let faults = if chosen.is_ok() { FAULTS } else { FEW_FAULTS };
    let seeds = chosen.unwrap_or_else(|_| "1,2".to_owned());
    let seeds: Vec<u64> = seeds
        .split(',')
        .map(|seed| seed.parse().expect("seeds are numbers"))
        .collect();
    let cluster = cluster_with::<Job>().await;
    for seeds in seeds.chunks(AT_ONCE) {
        join_all(
            seeds
                .iter()
                .map(|seed| with_faults(&cluster, *seed, faults)),
        )
        .await;
    }
}

async fn with_faults(cluster: &Cluster, seed: u64, count: usize) {
    let mut fleet = Fleet::start(cluster, &format!("faults-{seed}"), seed).await;
    for _ in 0..3 {
        fleet.add(Some(6)).await;
    }
    fleet.change_all("start").await;
    let mut faults = BTreeSet::new();
    for _ in 0..count {
        let fault = fleet.random_fault();
        faults.insert(fault);
        fleet.inject(fault).await;
        fleet.change_all(&format!("{fault:?}")).await;
    }
    let calls = fleet.stop().await;
    eprintln!("seed {seed}: {calls} calls without an overlap, with {faults:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_disagree_on_the_number_of_shards_are_never_active_together() {
    let cluster = cluster_with::<Job>().await;
    let mut fleet = Fleet::start(&cluster, "numbers", 0).await;
    let mut before = vec![fleet.add(None).await, fleet.add(None).await];
    fleet.change_all("the start without shards").await;
    for shards in [Some(3), Some(5), None] {
        // As in a rolling update: new replicas start before the old ones have ended.
        let mut after = vec![fleet.add(shards).await];
        fleet.change_all("the start of the first new replica").await;
        fleet.terminate(before.remove(0)).await;
        fleet.change_all("the end of the first old replica").await;
        after.push(fleet.add(shards).await);
        match shards {
            // One of the updates ends with a crash.
            Some(5) => fleet.kill(before.remove(0)),
            _ => fleet.terminate(before.remove(0)).await,
        }
        fleet.change_all("the end of the update").await;
        before = after;
    }
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_balanced_and_a_stopped_replica_hands_its_shards_over_at_once() {
    let cluster = cluster_with::<Job>().await;
    let mut fleet = Fleet::start(&cluster, "balance", 0).await;
    let first = fleet.add(Some(9)).await;
    fleet.balanced(&[9]).await;
    for counts in [&[5, 4][..], &[3, 3, 3], &[3, 2, 2, 2]] {
        fleet.add(Some(9)).await;
        fleet.balanced(counts).await;
    }
    fleet.change_all("the balance").await;
    fleet.terminate(first).await;
    fleet.balanced(&[3, 3, 3]).await;
    fleet.change_all("the end of a replica").await;
    fleet.inject(Fault::Frozen).await;
    fleet.balanced(&[3, 3, 3]).await;
    fleet.stop().await;
}
