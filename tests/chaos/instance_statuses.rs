//! Statuses that instances have for a while, as in RDS: some pass by themselves, and some end when an administrator acts.

use std::time::Duration;

use fastrand::Rng;
use lockstep_envtest::eventually_within;
use rds_simulator::{End, Simulator};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::database_origins::instance_id;
use crate::env::{TestEnv, condition};
use crate::instance_status_names::{PASSING, SERVING, STALLED};
use crate::workload::{Author, DesiredState};

/// Longest time of a status, in milliseconds.
const LONGEST_MS: u64 = 3_000;

/// Longest time until the objects report the statuses of their instances.
const LONGEST_REPORT: Duration = Duration::from_mins(2);

/// Changes of statuses until [`InstanceStatuses::stop`].
pub struct InstanceStatuses {
    task: JoinHandle<()>,
}

impl InstanceStatuses {
    /// Changes the status of a random instance about five times a second.
    pub fn start(rds: Simulator, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed + 3_000);
        let task = tokio::spawn(async move {
            let statuses = names();
            loop {
                sleep(Duration::from_millis(rng.u64(50..350))).await;
                let ids = rds.instance_ids();
                let Some(id) = rng.choice(&ids) else {
                    continue;
                };
                // An available instance cannot be gone a moment later: its deletion takes a while.
                let instance = rds.instance(id);
                if instance.is_some_and(|it| it["DBInstanceStatus"] == "available") {
                    let status = statuses[rng.usize(..statuses.len())];
                    let time = Duration::from_millis(rng.u64(..LONGEST_MS));
                    rds.force_status(id, status, End::After(time));
                }
            }
        });
        Self { task }
    }

    /// Ends the changes. The statuses pass.
    pub fn stop(&self) {
        self.task.abort();
    }
}

/// Returns the statuses that an instance can have although nothing was requested for it.
fn names() -> Vec<&'static str> {
    let requested = ["available", "creating", "deleting"];
    let stalled = STALLED.iter().map(|(name, _)| name);
    let all = SERVING.iter().chain(&PASSING).chain(stalled);
    let all = all.copied().filter(|name| !requested.contains(name));
    all.collect()
}

/// Gives each instance a status that stays, and waits until each object reports it: `Ready` is true only if clients are
/// served.
pub async fn are_reported(env: &TestEnv, rds: &Simulator, author: &Author) {
    let mut given = Vec::new();
    let mut statuses = names().into_iter().cycle();
    for (name, desired) in author.desired() {
        if let DesiredState::Exists { object, uid, .. } = desired
            && object["kind"] == "CloudDatabase"
        {
            let (id, status) = (instance_id(object, uid), statuses.next());
            let status = status.expect("a status");
            rds.force_status(&id, status, End::Released);
            given.push((name, id, status));
        }
    }
    assert!(!given.is_empty(), "no database is left");
    let mut wrong = Vec::new();
    let reported = eventually_within(LONGEST_REPORT, "the reports of the statuses", async || {
        wrong.clear();
        for (name, _, status) in &given {
            let object = env.databases().get(name).await.ok()?;
            let ready = condition(&object, "Ready");
            let is_ready = ready.as_ref().is_some_and(|it| it.status == "True");
            let is_told = object.data["status"]["phase"] == *status;
            if !is_told || is_ready != SERVING.contains(status) {
                wrong.push(format!("{name}, {status}: {ready:?}"));
            }
        }
        wrong.is_empty().then_some(())
    });
    if let Err(error) = reported.await {
        env.fail(&format!("{error}: {wrong:#?}"));
    }
    println!(
        "{} instances had a status each, which their objects reported",
        given.len()
    );
    for (_, id, _) in given {
        rds.release(&id);
    }
}
