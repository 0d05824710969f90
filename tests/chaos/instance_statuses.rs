//! Statuses that instances have for a while, as in RDS: some pass by themselves, and some end when an administrator acts.

use std::time::Duration;

use fastrand::Rng;
use rds_simulator::{End, Simulator};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Statuses of which each instance gets some.
const STATUSES: [&str; 16] = [
    "backing-up",
    "configuring-log-exports",
    "failed",
    "inaccessible-encryption-credentials-recoverable",
    "incompatible-network",
    "incompatible-option-group",
    "incompatible-parameters",
    "maintenance",
    "modifying",
    "of-a-later-release",
    "rebooting",
    "resetting-master-credentials",
    "stopped",
    "storage-full",
    "storage-optimization",
    "upgrading",
];

/// Longest time of a status, in milliseconds.
const LONGEST_MS: u64 = 3_000;

/// Changes of statuses until [`InstanceStatuses::stop`].
pub struct InstanceStatuses {
    task: JoinHandle<()>,
}

impl InstanceStatuses {
    /// Changes the status of a random instance about five times a second.
    pub fn start(rds: Simulator, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed + 3_000);
        let task = tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(rng.u64(50..350))).await;
                let ids = rds.instance_ids();
                let Some(id) = rng.choice(&ids) else {
                    continue;
                };
                // An available instance cannot be gone a moment later: its deletion takes a while.
                let instance = rds.instance(id);
                if instance.is_some_and(|it| it["DBInstanceStatus"] == "available") {
                    let status = STATUSES[rng.usize(..STATUSES.len())];
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
