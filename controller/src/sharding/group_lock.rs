//! Lock on the Lease of the leader election by all replicas with the same number of shards.

use kube::Client;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::leader_election::lease_lock::{LeaseLock, Lock, OtherHolder, RENEW_DEADLINE};

/// Attempts to renew the Lease, each after another replica was faster.
const ATTEMPTS: usize = 3;

/// Lock that all replicas with the same number of shards hold together.
///
/// The holder of the Lease is not a replica but the number of shards. A replica without shards is a candidate for the same
/// Lease under its own name, and one with another number of shards under that number. So the rules of leader election
/// exclude replicas that disagree on who owns an object: a replica holds shards only while this lock is held.
///
/// # Guarantees
///
/// The Lease has been written after the time that a renewal returns. Candidates of another identity wait for the duration of
/// the Lease after its latest write, so that none of them acquires it before that time has passed for every replica of the
/// group, whichever of them wrote last.
pub(crate) struct GroupLock {
    lock: LeaseLock,
    /// Resource version that this replica has seen last, and a time before the read or the write that returned it.
    seen: Mutex<Option<(String, Instant)>>,
}

impl GroupLock {
    /// Returns the lock of the replicas with a number of shards.
    pub(crate) fn new(client: Client, namespace: &str, lease: &str, shards: u32) -> Self {
        Self {
            // The name of a Pod contains no slash.
            lock: LeaseLock::new(client, namespace, lease, &format!("shards/{shards}")),
            seen: Mutex::default(),
        }
    }

    /// Forgets what this replica has seen, so that the next renewal writes the Lease.
    pub(crate) fn forget(&self) {
        *self.seen.lock() = None;
    }

    /// Releases the Lease if no other replica is in the group.
    ///
    /// A replica joins the group in this order: it writes its membership Lease, and then this Lease. This function goes the
    /// other way: it reads this Lease, then the membership Leases, and then writes this Lease if it has not changed. If
    /// another replica has joined before the first read, its membership is found. If it joins later, this write fails.
    pub(crate) async fn release_if_alone(
        &self,
        is_alone: impl Future<Output = Result<bool, kube::Error>>,
    ) -> Result<(), kube::Error> {
        let Some(lease) = self.lock.read().await? else {
            return Ok(());
        };
        if is_alone.await? {
            self.lock.write_released(lease).await?;
        }
        Ok(())
    }
}

impl Lock for GroupLock {
    fn name(&self) -> &str {
        self.lock.name()
    }

    async fn try_acquire(
        &self,
        other_holder: &mut Option<OtherHolder>,
    ) -> Result<Option<Instant>, kube::Error> {
        let Ok(renewed) = timeout(RENEW_DEADLINE, self.renew()).await else {
            return Ok(None);
        };
        if let Some(renewed) = renewed? {
            return Ok(Some(renewed));
        }
        self.lock.try_acquire(other_holder).await
    }

    async fn renew(&self) -> Result<Option<Instant>, kube::Error> {
        for _ in 0..ATTEMPTS {
            let started = Instant::now();
            let lease = self.lock.read().await?;
            let Some(lease) = lease.filter(|lease| self.lock.is_holder(lease)) else {
                return Ok(None);
            };
            let version = lease.metadata.resource_version.clone().unwrap_or_default();
            let seen = self.seen.lock().replace((version.clone(), started));
            if let Some((before, at)) = seen
                && before != version
            {
                // Another replica of the group has written it since then.
                return Ok(Some(at));
            }
            if let Some(written) = self.lock.write(Some(&lease)).await? {
                let version = written.metadata.resource_version.unwrap_or_default();
                *self.seen.lock() = Some((version, started));
                return Ok(Some(started));
            }
            // Another replica was faster. If it is of this group, the next read shows its write.
        }
        Ok(None)
    }
}
