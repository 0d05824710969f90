//! Faults of the processes during the test.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use lockstep_envtest::{Process, eventually};
use serde_json::json;
use tokio::time::sleep;

use crate::env::TestEnv;
use crate::fault_proxy::FaultSchedule;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessFault {
    /// The leader is killed.
    LeaderKilled,
    /// Both replicas are killed.
    BothKilled,
    /// The leader gets SIGTERM.
    LeaderEnded,
    /// The leader is frozen until the other replica leads, and then continues without knowing it.
    LeaderFrozen,
    /// Another holder is written into the lease, with the times of another clock.
    LeaseStolen,
    /// The times in the lease are those of another clock.
    LeaseSkewed,
    ApiserverKilled,
    WatchesCut,
}

const ALL_FAULTS: [ProcessFault; 8] = [
    ProcessFault::LeaderKilled,
    ProcessFault::BothKilled,
    ProcessFault::LeaderEnded,
    ProcessFault::LeaderFrozen,
    ProcessFault::LeaseStolen,
    ProcessFault::LeaseSkewed,
    ProcessFault::ApiserverKilled,
    ProcessFault::WatchesCut,
];

pub struct ProcessFaults {
    rng: Rng,
    before_apiserver: FaultSchedule,
}

impl ProcessFaults {
    pub fn new(seed: u64, before_apiserver: FaultSchedule) -> Self {
        Self {
            rng: Rng::with_seed(seed + 3_000),
            before_apiserver,
        }
    }

    /// Runs every fault once, in random order.
    pub async fn run_all(&mut self, env: &mut TestEnv) -> BTreeMap<ProcessFault, usize> {
        let start_other = |env: &TestEnv| env.installation.start_other_controller("pod-1");
        let mut other = start_other(env).expect("a second replica");
        let mut faults = ALL_FAULTS;
        self.rng.shuffle(&mut faults);
        let mut counts = BTreeMap::new();
        for fault in faults {
            sleep(Duration::from_millis(self.rng.u64(500..4_000))).await;
            let leads_other = match fault {
                ProcessFault::LeaderKilled
                | ProcessFault::LeaderEnded
                | ProcessFault::LeaderFrozen => leader(env).await == "pod-1",
                _ => false,
            };
            match fault {
                ProcessFault::LeaderKilled | ProcessFault::LeaderEnded if leads_other => {
                    if fault == ProcessFault::LeaderEnded {
                        ends(&mut other).await;
                    }
                    other.kill();
                    other = start_other(env).expect("the process restarts");
                }
                ProcessFault::LeaderKilled | ProcessFault::LeaderEnded => {
                    let leader = env.installation.controller();
                    if fault == ProcessFault::LeaderEnded {
                        ends(leader).await;
                    }
                    leader.kill();
                    env.installation
                        .start_controller()
                        .expect("the process restarts");
                }
                ProcessFault::BothKilled => {
                    other.kill();
                    env.installation.controller().kill();
                    env.installation
                        .start_controller()
                        .expect("the process restarts");
                    other = start_other(env).expect("the process restarts");
                }
                ProcessFault::LeaderFrozen => {
                    let frozen = replica(env, &mut other, leads_other).freeze();
                    frozen.expect("the process is frozen");
                    leads(env, if leads_other { "pod-0" } else { "pod-1" }).await;
                    let thawed = replica(env, &mut other, leads_other).thaw();
                    thawed.expect("the process continues");
                }
                ProcessFault::LeaseStolen | ProcessFault::LeaseSkewed => {
                    let is_stolen = fault == ProcessFault::LeaseStolen;
                    self.writes_lease(env, is_stolen).await;
                }
                ProcessFault::ApiserverKilled => {
                    env.cluster
                        .restart_apiserver()
                        .await
                        .expect("the API server restarts");
                }
                ProcessFault::WatchesCut => self.before_apiserver.cuts_watches(),
            }
            *counts.entry(fault).or_default() += 1;
        }
        counts
    }

    /// Writes the lease with the clock of a process that is hours ahead or behind.
    async fn writes_lease(&mut self, env: &TestEnv, is_stolen: bool) {
        let hours = SignedDuration::from_hours(self.rng.i64(-12..12));
        // The API server expects microseconds in the times of a lease.
        let time = format!("{:.6}", Timestamp::now() + hours);
        let mut spec = json!({"renewTime": time, "acquireTime": time});
        if is_stolen {
            spec["holderIdentity"] = json!("another holder");
        }
        let patch = Patch::Merge(json!({"spec": spec}));
        let written = eventually("the write of the lease", async || {
            let params = PatchParams::default();
            leases(env)
                .patch("lockstep-controller", &params, &patch)
                .await
                .ok()
        });
        written.await.expect("the lease is written");
    }
}

fn replica<'a>(env: &'a mut TestEnv, other: &'a mut Process, is_other: bool) -> &'a mut Process {
    if is_other {
        other
    } else {
        env.installation.controller()
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
async fn leader(env: &TestEnv) -> String {
    leads(env, "pod-").await
}

/// Waits until a replica with this name prefix leads.
async fn leads(env: &TestEnv, name: &str) -> String {
    let leader = eventually("the election of a leader", async || {
        let lease = leases(env).get("lockstep-controller").await.ok()?;
        let holder = lease.spec?.holder_identity?;
        holder.starts_with(name).then_some(holder)
    });
    leader.await.expect("a replica is elected")
}

fn leases(env: &TestEnv) -> Api<Lease> {
    Api::namespaced(env.cluster.client(), "lockstep-system")
}
