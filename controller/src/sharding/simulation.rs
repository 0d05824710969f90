//! Simulation of replicas that start, stop, crash, freeze and lose the API server, in virtual time.

mod external_system;
mod replica;

use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use tokio::time::{Instant, sleep, sleep_until};

use crate::leader_election::fake_leases::FakeLeases;
use crate::sharding::shard_elector::MAX_DRAIN;
use crate::sharding::simulation::external_system::ExternalSystem;
use crate::sharding::simulation::replica::{LEASE, Replica};

/// Replicas of one run.
struct Simulation {
    rng: Rng,
    leases: FakeLeases,
    external: ExternalSystem,
    replicas: Vec<Replica>,
    started: usize,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            leases: FakeLeases::new(seed),
            external: ExternalSystem::new(seed),
            replicas: Vec::new(),
            started: 0,
        }
    }

    fn start(&mut self, shards: Option<u32>) {
        self.started += 1;
        let identity = format!("replica-{}", self.started);
        let replica = Replica::start(&self.leases, &self.external, &identity, shards);
        self.replicas.push(replica);
    }

    /// Lets time pass.
    async fn pass(&mut self, seconds: std::ops::Range<u64>) {
        let time = self.rng.u64(seconds.start * 1_000..seconds.end * 1_000);
        sleep(Duration::from_millis(time)).await;
    }

    /// Checks that every object is worked on, and that none has ever had two owners.
    async fn check(&mut self, what: &str) {
        // The Lease of a replica that has ended expires, and with it that of a shard which it has just acquired.
        sleep(Duration::from_mins(1)).await;
        self.external.check(Duration::from_secs(20), what);
    }

    fn fault(&mut self, modes: &[Option<u32>]) {
        let at = self.rng.usize(..self.replicas.len());
        match self.rng.u32(..8) {
            0 => {
                let mode = modes[self.rng.usize(..modes.len())];
                self.start(mode);
            }
            1 if self.replicas.len() > 1 => self.replicas.remove(at).kill(),
            2 if self.replicas.len() > 1 => drop(self.replicas.remove(at).stop()),
            3 => self.replicas[at].freeze(true),
            4 => self.replicas[at].cut_off(true),
            5 => {
                let names = self.leases.names();
                let name = &names[self.rng.usize(..names.len())];
                self.leases.steal(name);
            }
            6 => self.leases.steal(LEASE),
            _ => {
                for replica in &self.replicas {
                    replica.freeze(false);
                    replica.cut_off(false);
                }
            }
        }
    }

    async fn run(&mut self, modes: &[Option<u32>], what: &str) {
        for at in 0..3 {
            self.start(modes[at % modes.len()]);
        }
        self.check(what).await;
        for _ in 0..3 {
            for _ in 0..8 {
                self.fault(modes);
                self.pass(0..12).await;
            }
            for replica in &self.replicas {
                replica.freeze(false);
                replica.cut_off(false);
            }
            self.check(what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_has_one_owner_at_a_time_whatever_happens_to_the_replicas() {
    for seed in 0..12 {
        let mut simulation = Simulation::new(seed);
        simulation.run(&[Some(6)], &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_with_other_numbers_of_shards_or_none_are_not_active_at_the_same_time() {
    for seed in 0..12 {
        let mut simulation = Simulation::new(seed);
        let modes = [Some(6), Some(4), None];
        simulation.run(&modes, &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_that_stop_hand_over_to_those_with_another_number_of_shards_at_once() {
    for seed in 0..10 {
        let mut simulation = Simulation::new(seed);
        let mut group = None;
        for mode in [None, Some(4), Some(9), None] {
            let before = std::mem::take(&mut simulation.replicas);
            let stopped: Vec<_> = (1..=simulation.started)
                .map(|at| format!("replica-{at}"))
                .chain(group)
                .collect();
            simulation.start(mode);
            simulation.start(mode);
            simulation.pass(10..11).await;
            join_all(before.into_iter().map(Replica::stop)).await;
            for name in simulation.leases.names() {
                let holder = simulation.leases.holder(&name).unwrap_or_default();
                assert!(!stopped.contains(&holder), "{holder} has released {name}");
            }
            // An object may wait until the shard has moved to the second replica.
            sleep(Duration::from_secs(30)).await;
            let what = format!("the handover to {mode:?} with seed {seed}");
            simulation.external.check(Duration::from_secs(20), &what);
            let holder = simulation.leases.holder(LEASE).unwrap_or_default();
            group = mode.map(|shards| format!("shards/{shards}"));
            assert!(
                group.as_ref().is_none_or(|group| *group == holder),
                "{holder}"
            );
        }
        let all = std::mem::take(&mut simulation.replicas);
        join_all(all.into_iter().map(Replica::stop)).await;
        for name in simulation.leases.names() {
            let holder = simulation.leases.holder(&name);
            assert_eq!(holder, None, "{name} is released");
            assert!(!name.contains("-replica-"), "{name} is deleted");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciliation_that_does_not_end_keeps_its_shard_for_a_limited_time() {
    let mut simulation = Simulation::new(0);
    simulation.external.never_answer("replica-1");
    simulation.start(Some(6));
    let begun = Instant::now();
    sleep(Duration::from_secs(30)).await;
    let leases = simulation.leases.clone();
    let held_by = |replica: &str| {
        let shards = leases.names().into_iter();
        let shards = shards.filter(|name| name.contains("-shard-"));
        shards
            .filter(|name| leases.holder(name).as_deref() == Some(replica))
            .count()
    };
    assert_eq!(held_by("replica-1"), 6);
    simulation.start(Some(6));
    sleep_until(begun + MAX_DRAIN).await;
    assert_eq!(held_by("replica-2"), 0, "the reconciliations are running");
    sleep(Duration::from_secs(90)).await;
    assert_eq!((held_by("replica-1"), held_by("replica-2")), (3, 3));
}
