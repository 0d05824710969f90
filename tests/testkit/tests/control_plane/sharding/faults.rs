//! Faults of the replicas.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use crate::sharding::fleet::Fleet;
use crate::sharding::replica::LEASE;

/// Time for which a replica is frozen or cut off: the others take over its shards in it.
const INTERRUPTION: Duration = Duration::from_secs(22);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A replica is killed, and a new one starts.
    Killed,
    /// A replica is stopped, and a new one starts.
    Stopped,
    /// A replica starts.
    Added,
    /// A replica is stopped while another one is frozen.
    StoppedAndFrozen,
    /// The process of a replica is frozen until others have taken over, and then continues without knowing it.
    Frozen,
    /// A replica gets no response of the API server until others have taken over.
    CutOff,
    /// Another holder is written into the Lease of a shard.
    ShardStolen,
    /// Another holder is written into the Lease of the leader election.
    GroupStolen,
}

const ALL: [Fault; 8] = [
    Fault::Killed,
    Fault::Stopped,
    Fault::Added,
    Fault::StoppedAndFrozen,
    Fault::Frozen,
    Fault::CutOff,
    Fault::ShardStolen,
    Fault::GroupStolen,
];

impl Fleet<'_> {
    pub fn random_fault(&mut self) -> Fault {
        ALL[self.rng.usize(..ALL.len())]
    }

    pub async fn inject(&mut self, fault: Fault) {
        sleep(Duration::from_millis(self.rng.u64(..3_000))).await;
        let numbers: Vec<_> = self.replicas.keys().copied().collect();
        let number = numbers[self.rng.usize(..numbers.len())];
        let shards = self.replicas[&number].shards;
        match fault {
            Fault::Killed => {
                self.kill(number);
                self.add(shards).await;
            }
            Fault::Stopped => {
                self.add(shards).await;
                self.terminate(number).await;
            }
            Fault::Added if numbers.len() > 3 => self.terminate(number).await,
            Fault::Added => drop(self.add(shards).await),
            Fault::StoppedAndFrozen => {
                let other = *numbers.iter().find(|it| **it != number).expect("another");
                self.freeze(other, true);
                self.terminate(number).await;
                sleep(INTERRUPTION).await;
                self.freeze(other, false);
                self.add(shards).await;
            }
            Fault::Frozen => {
                self.freeze(number, true);
                sleep(INTERRUPTION).await;
                self.freeze(number, false);
            }
            Fault::CutOff => {
                self.replicas[&number].proxy.stall(true);
                sleep(INTERRUPTION).await;
                self.replicas[&number].proxy.stall(false);
            }
            Fault::ShardStolen => {
                let shard = self.rng.u32(..shards.unwrap_or(1));
                self.steal(&format!("{LEASE}-shard-{shard}")).await;
            }
            Fault::GroupStolen => self.steal(LEASE).await,
        }
    }

    fn freeze(&self, number: usize, is_frozen: bool) {
        let process = &self.replicas[&number].process;
        let signalled = if is_frozen {
            process.freeze()
        } else {
            process.thaw()
        };
        signalled.expect("a signal");
    }

    async fn steal(&self, lease: &str) {
        let patch = Patch::Merge(json!({"spec": {"holderIdentity": "another-holder"}}));
        let leases = self.leases();
        let stolen = leases.patch(lease, &PatchParams::default(), &patch).await;
        stolen.expect("the Lease is written");
    }
}
