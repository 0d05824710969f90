//! Faults of the processes during the test.

use std::collections::BTreeMap;
use std::time::Duration;

use control_plane::{Process, eventually};
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use crate::weather::Weather;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stroke {
    /// The leader is killed.
    LeaderKilled,
    /// Both replicas are killed.
    BothKilled,
    /// The leader gets SIGTERM.
    LeaderEnded,
    /// The leader is frozen until the other replica leads, and then continues without knowing it.
    LeaderFrozen,
    /// Another holder is written into the lease, with the times of another clock.
    LeaseTaken,
    /// The times in the lease are those of another clock.
    LeaseSkewed,
    ApiserverKilled,
    WatchesCut,
}

const STROKES: [Stroke; 8] = [
    Stroke::LeaderKilled,
    Stroke::BothKilled,
    Stroke::LeaderEnded,
    Stroke::LeaderFrozen,
    Stroke::LeaseTaken,
    Stroke::LeaseSkewed,
    Stroke::ApiserverKilled,
    Stroke::WatchesCut,
];

pub struct Storm {
    dice: Rng,
    before_apiserver: Weather,
}

impl Storm {
    pub fn new(seed: u64, before_apiserver: Weather) -> Self {
        Self {
            dice: Rng::with_seed(seed + 3_000),
            before_apiserver,
        }
    }

    /// Runs every fault once, in random order.
    pub async fn rages(&mut self, world: &mut World) -> BTreeMap<Stroke, usize> {
        let start_other = |world: &World| world.installation.start_other_controller("pod-1");
        let mut other = start_other(world).expect("a second replica");
        let mut strokes = STROKES;
        self.dice.shuffle(&mut strokes);
        let mut told = BTreeMap::new();
        for stroke in strokes {
            sleep(Duration::from_millis(self.dice.u64(500..4_000))).await;
            let leads_other = match stroke {
                Stroke::LeaderKilled | Stroke::LeaderEnded | Stroke::LeaderFrozen => {
                    leader(world).await == "pod-1"
                }
                _ => false,
            };
            match stroke {
                Stroke::LeaderKilled | Stroke::LeaderEnded if leads_other => {
                    if stroke == Stroke::LeaderEnded {
                        ends(&mut other).await;
                    }
                    other.kill();
                    other = start_other(world).expect("the process restarts");
                }
                Stroke::LeaderKilled | Stroke::LeaderEnded => {
                    let leader = world.installation.controller();
                    if stroke == Stroke::LeaderEnded {
                        ends(leader).await;
                    }
                    leader.kill();
                    world
                        .installation
                        .start_controller()
                        .expect("the process restarts");
                }
                Stroke::BothKilled => {
                    other.kill();
                    world.installation.controller().kill();
                    world
                        .installation
                        .start_controller()
                        .expect("the process restarts");
                    other = start_other(world).expect("the process restarts");
                }
                Stroke::LeaderFrozen => {
                    let frozen = replica(world, &mut other, leads_other).freeze();
                    frozen.expect("the process is frozen");
                    leads(world, if leads_other { "pod-0" } else { "pod-1" }).await;
                    let thawed = replica(world, &mut other, leads_other).thaw();
                    thawed.expect("the process continues");
                }
                Stroke::LeaseTaken | Stroke::LeaseSkewed => {
                    let is_taken = stroke == Stroke::LeaseTaken;
                    self.writes_lease(world, is_taken).await;
                }
                Stroke::ApiserverKilled => {
                    world
                        .cluster
                        .restart_apiserver()
                        .await
                        .expect("the API server restarts");
                }
                Stroke::WatchesCut => self.before_apiserver.cuts_watches(),
            }
            *told.entry(stroke).or_default() += 1;
        }
        told
    }

    /// Writes the lease with the clock of a process that is hours ahead or behind.
    async fn writes_lease(&mut self, world: &World, is_taken: bool) {
        let hours = SignedDuration::from_hours(self.dice.i64(-12..12));
        // The API server expects microseconds in the times of a lease.
        let time = format!("{:.6}", Timestamp::now() + hours);
        let mut spec = json!({"renewTime": time, "acquireTime": time});
        if is_taken {
            spec["holderIdentity"] = json!("another holder");
        }
        let patch = Patch::Merge(json!({"spec": spec}));
        let written = eventually("the write of the lease", async || {
            let params = PatchParams::default();
            leases(world)
                .patch("lockstep-controller", &params, &patch)
                .await
                .ok()
        });
        written.await.expect("the lease is written");
    }
}

fn replica<'a>(world: &'a mut World, other: &'a mut Process, is_other: bool) -> &'a mut Process {
    if is_other {
        other
    } else {
        world.installation.controller()
    }
}

/// Terminates a replica, which must exit successfully despite the faults.
async fn ends(replica: &mut Process) {
    replica.terminate().expect("a signal");
    let status = eventually("a replica's exit", async || replica.exit_status());
    let status = status.await.expect("the process ends");
    assert!(status.success(), "{status}: {}", replica.output());
}

/// Name of the leader, once there is one.
async fn leader(world: &World) -> String {
    leads(world, "pod-").await
}

/// Waits until a replica with this name prefix leads.
async fn leads(world: &World, name: &str) -> String {
    let leader = eventually("the election of a leader", async || {
        let lease = leases(world).get("lockstep-controller").await.ok()?;
        let holder = lease.spec?.holder_identity?;
        holder.starts_with(name).then_some(holder)
    });
    leader.await.expect("a replica is elected")
}

fn leases(world: &World) -> Api<Lease> {
    Api::namespaced(world.cluster.client(), "lockstep-system")
}
