//! Leases of all shards, and of the replicas that share them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use kube::{Client, ResourceExt};

use crate::leader_election::lease_lock::{LEASE_DURATION, OtherHolder, holder};

/// Label of the Leases of all shards and replicas, with the name of the Lease for leader election.
pub const LEADER_ELECTION_ID_LABEL: &str = "lockstep.dev/leader-election-id";

/// Label of the same Leases, with the number of shards. The Lease of a shard gets another value when the number changes.
const SHARDS_LABEL: &str = "lockstep.dev/shards";

/// Time after which the membership Lease of a replica that no longer renews it is deleted: far longer than all deadlines of
/// that replica.
const FORGET_AFTER: Duration = LEASE_DURATION.saturating_mul(10);

/// Names of the Leases of one installation.
#[derive(Clone)]
pub(crate) struct LeaseNames {
    election: String,
    count: NonZeroU32,
}

impl LeaseNames {
    pub(crate) fn new(election: &str, count: NonZeroU32) -> Self {
        Self {
            election: election.to_owned(),
            count,
        }
    }

    /// Returns the name of the Lease of a shard.
    pub(crate) fn shard(&self, shard: u32) -> String {
        format!("{}-shard-{shard}", self.election)
    }

    /// Returns the name of the membership Lease of a replica.
    pub(crate) fn replica(&self, identity: &str) -> String {
        format!("{}-replica-{identity}", self.election)
    }

    /// Returns the name of the Lease for the tasks that one replica runs for all.
    pub(crate) fn tasks(&self) -> String {
        format!("{}-tasks", self.election)
    }

    /// Returns the labels of all Leases but the one for leader election.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let labels = [
            (LEADER_ELECTION_ID_LABEL, self.election.clone()),
            (SHARDS_LABEL, self.count.to_string()),
        ];
        labels
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }
}

/// Leases as this replica sees them over time.
pub(crate) struct LeaseTable {
    leases: Api<Lease>,
    names: LeaseNames,
    identity: String,
    seen: HashMap<String, Option<OtherHolder>>,
}

/// Leases at one moment.
pub(crate) struct LeaseView {
    /// Identities of the replicas that take shards, including this one.
    pub(crate) replicas: BTreeSet<String>,
    /// Other holders of the shards. If there is none, this replica holds the shard or can acquire it.
    pub(crate) holders: BTreeMap<u32, Option<String>>,
    /// Existing Leases of the shards.
    shards: BTreeMap<u32, Lease>,
    /// Membership Lease of this replica.
    member: Option<Lease>,
}

impl LeaseView {
    /// Returns the Lease of a shard, if it exists.
    pub(crate) fn shard(&self, shard: u32) -> Option<&Lease> {
        self.shards.get(&shard)
    }

    /// Returns the membership Lease of this replica, if it exists.
    pub(crate) fn member(&self) -> Option<&Lease> {
        self.member.as_ref()
    }
}

impl LeaseTable {
    pub(crate) fn new(client: Client, namespace: &str, names: LeaseNames, identity: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            names,
            identity: identity.to_owned(),
            seen: HashMap::new(),
        }
    }

    /// Reads all Leases, and deletes those of replicas that have ended long ago.
    pub(crate) async fn read(&mut self) -> Result<LeaseView, kube::Error> {
        let all = self.list().await?;
        let mut by_name: HashMap<_, _> = all
            .into_iter()
            .map(|lease| (lease.name_any(), lease))
            .collect();
        self.seen.retain(|name, _| by_name.contains_key(name));
        let mut view = LeaseView {
            replicas: BTreeSet::from([self.identity.clone()]),
            holders: BTreeMap::new(),
            shards: BTreeMap::new(),
            member: by_name.remove(&self.names.replica(&self.identity)),
        };
        for shard in 0..self.names.count.get() {
            let lease = by_name.remove(&self.names.shard(shard));
            let holder = lease.as_ref().and_then(|lease| self.live_holder(lease));
            // A shard that this replica does not hold, although its Lease says so, is left from an earlier time.
            let holder = holder.filter(|holder| *holder != self.identity);
            view.holders.insert(shard, holder);
            view.shards.extend(lease.map(|lease| (shard, lease)));
        }
        for (name, lease) in by_name {
            if self.is_member(&lease) {
                view.replicas.extend(self.live_holder(&lease));
                self.delete_if_abandoned(&name, &lease).await;
            }
        }
        Ok(view)
    }

    /// Returns true if no other replica has a membership Lease, whether it renews it or not.
    pub(crate) async fn is_alone(&self) -> Result<bool, kube::Error> {
        let own = self.names.replica(&self.identity);
        let all = self.list().await?;
        let mut members = all.iter().filter(|lease| self.is_member(lease));
        Ok(members.all(|lease| lease.name_any() == own))
    }

    /// Deletes the membership Lease of this replica.
    pub(crate) async fn delete_member(&self) -> Result<(), kube::Error> {
        let name = self.names.replica(&self.identity);
        match self.leases.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    async fn list(&self) -> Result<Vec<Lease>, kube::Error> {
        let selector = format!("{LEADER_ELECTION_ID_LABEL}={}", self.names.election);
        // Without a resource version, the list is not older than the request.
        let params = ListParams::default().labels(&selector);
        Ok(self.leases.list(&params).await?.items)
    }

    /// Returns true for the membership Lease of a replica with the same number of shards.
    fn is_member(&self, lease: &Lease) -> bool {
        let shards = lease.labels().get(SHARDS_LABEL);
        lease.name_any().starts_with(&self.names.replica(""))
            && shards == Some(&self.names.count.to_string())
    }

    /// Returns the holder of a Lease, unless it has not been renewed for its duration.
    fn live_holder(&mut self, lease: &Lease) -> Option<String> {
        let holder = holder(lease)?;
        let seen = self.seen.entry(lease.name_any()).or_default();
        let has_expired = OtherHolder::has_expired(seen, lease);
        (holder == &self.identity || !has_expired).then(|| holder.clone())
    }

    async fn delete_if_abandoned(&self, name: &str, lease: &Lease) {
        let seen = self.seen.get(name).and_then(Option::as_ref);
        if seen.is_none_or(|seen| seen.unchanged_for() < FORGET_AFTER) {
            return;
        }
        let params = DeleteParams::default().preconditions(Preconditions {
            resource_version: lease.resource_version(),
            uid: lease.uid(),
        });
        if let Err(error) = self.leases.delete(name, &params).await {
            tracing::debug!(%error, lease = name, "the Lease of a replica that has ended is not deleted");
        }
    }
}
