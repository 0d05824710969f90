//! Election of the holder of each shard.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::leader_election::lease_lock::{
    LEASE_DURATION, LeaseLock, Lock, RENEW_DEADLINE, retry_interval,
};
use crate::leader_election::{LeaderElectionMetrics, LeaderElector, Leadership};
use crate::sharding::balance::Situation;
use crate::sharding::group_lock::GroupLock;
use crate::sharding::held_shards::Shards;
use crate::sharding::lease_table::{LeaseNames, LeaseTable};

/// Time before the end of a Lease at which reconciliations that still run are dropped.
const REVOKE_BEFORE_EXPIRY: Duration = Duration::from_secs(1);

/// Time that a reconciliation has to end before its shard is released. Without a limit, one that hangs would keep every object
/// of the shard from being reconciled.
pub(crate) const MAX_DRAIN: Duration = Duration::from_mins(5);

/// Candidate for the shards of an installation, each of which has a Lease, and for the tasks that one replica runs for all.
///
/// The replicas with the same number of shards hold the Lease of the leader election together. A candidate holds shards only
/// during that time: a replica without shards, or with another number of them, is never active at the same time.
///
/// The SDK's program runs one with `--shards`. A program of one's own does it like this:
///
/// ```no_run
/// use std::num::NonZeroU32;
///
/// use kube::Client;
/// use lockstep_controller::{
///     Controller, LeaderElectionMetrics, Reconciler, Runnable, ShardElector,
/// };
/// use prometheus_client::registry::Registry;
/// use tokio::sync::watch;
///
/// async fn run<R: Reconciler>(
///     client: Client,
///     controller: impl Fn() -> Controller<R>,
///     stop: watch::Receiver<bool>,
/// ) {
///     let metrics = LeaderElectionMetrics::register(&mut Registry::default());
///     let count = NonZeroU32::new(9).expect("a number of shards");
///     let elector = ShardElector::new(client, "shop", "shop-controller", "pod-0", count, &metrics);
///     let shards = elector.shards();
///     let controllers = |stop| {
///         let controller = controller().with_shards(shards.clone());
///         async move { Box::new(controller).run(stop).await }
///     };
///     // Nothing else that only one replica does.
///     elector.run(stop, controllers, async |_| {}).await;
/// }
/// ```
pub struct ShardElector {
    client: Client,
    namespace: String,
    names: LeaseNames,
    identity: String,
    metrics: LeaderElectionMetrics,
    shards: Shards,
    group: GroupLock,
    /// Time until which no replica outside the group is active.
    of_group: Leadership,
    tasks: LeaderElector,
}

/// Shard that was acquired, with a time before the write that acquired it and with its deadline.
type Acquired = (u32, Instant, Leadership);

impl ShardElector {
    /// Returns a candidate with an identity that no other replica has, such as the name of its Pod. `lease` is the Lease of
    /// the leader election; the names of all others begin with that name.
    pub fn new(
        client: Client,
        namespace: &str,
        lease: &str,
        identity: &str,
        count: NonZeroU32,
        metrics: &LeaderElectionMetrics,
    ) -> Self {
        let names = LeaseNames::new(lease, count);
        for shard in 0..count.get() {
            metrics.of(&names.shard(shard)).set(0);
        }
        let tasks = names.tasks();
        Self {
            group: GroupLock::new(client.clone(), namespace, lease, count.get()),
            tasks: LeaderElector::new(client.clone(), namespace, &tasks, identity, metrics),
            shards: Shards::new(count),
            of_group: Leadership::pending(),
            metrics: metrics.clone(),
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            client,
            names,
        }
    }

    /// Returns the shards that this replica holds.
    pub fn shards(&self) -> Shards {
        self.shards.clone()
    }

    /// Takes its share of the shards whenever it can, until `stop` turns true.
    ///
    /// `controllers` is called for each time in which replicas with this number of shards are active. The controllers
    /// reconcile the objects of the [held shards](Self::shards). `leader` is called for each term in which this replica is
    /// the one that runs the tasks for all. Both receive a signal that turns true when they have to end.
    ///
    /// # Guarantees
    ///
    /// All reconciliations of a shard have ended, or were dropped, before its Lease is released or expires.
    pub async fn run<C: Future<Output = ()>, L: Future<Output = ()>>(
        &self,
        mut stop: watch::Receiver<bool>,
        controllers: impl Fn(watch::Receiver<bool>) -> C,
        leader: impl Fn(watch::Receiver<bool>) -> L,
    ) {
        loop {
            let joined = tokio::select! {
                joined = self.join() => joined,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let (identity, shards) = (&self.identity, self.shards.count());
            tracing::info!(identity, shards, "takes part in the sharding");
            let renewed_at = Mutex::new(joined);
            let extend = |renewed: Instant| {
                *renewed_at.lock() = renewed;
                self.of_group.extend_until(renewed + LEASE_DURATION);
            };
            extend(joined);
            let (end, ending) = watch::channel(false);
            let mut work = Box::pin(self.work(ending, &controllers, &leader));
            let mut renewals = pin!(self.group.renew_until_lost(joined, extend));
            let is_stopped = tokio::select! {
                _ = &mut renewals => false,
                _ = stop.wait_for(|stop| *stop) => true,
                () = &mut work => return,
            };
            self.shards.suspend_all();
            end.send_replace(true);
            let before_expiry = || *renewed_at.lock() + LEASE_DURATION - REVOKE_BEFORE_EXPIRY;
            let mut has_ended = false;
            if is_stopped {
                // The Leases are renewed until the reconciliations have ended.
                tokio::select! {
                    ended = timeout(RENEW_DEADLINE, &mut work) => has_ended = ended.is_ok(),
                    _ = &mut renewals => {}
                }
            } else {
                let lease = self.group.name();
                tracing::error!(lease, "the lease could not be renewed; stopping all work");
                has_ended = timeout_at(before_expiry(), &mut work).await.is_ok();
            }
            if !has_ended {
                tracing::warn!("reconciliations are stopped before they finish");
                self.shards.revoke_all();
                let expires = before_expiry() + REVOKE_BEFORE_EXPIRY;
                has_ended = timeout_at(expires, &mut work).await.is_ok();
            }
            self.of_group.end();
            // What has not ended by now is not polled any more, and dropped.
            for shard in self.shards.remove_all() {
                self.metrics.of(&self.names.shard(shard)).set(0);
            }
            if is_stopped {
                if has_ended {
                    self.leave().await;
                }
                return;
            }
        }
    }

    /// Returns once this replica is in the group that holds the Lease of the leader election, with a time before the write
    /// that has shown it.
    async fn join(&self) -> Instant {
        let mut retries = retry_interval();
        loop {
            retries.tick().await;
            self.group.acquire().await;
            match timeout(RENEW_DEADLINE, self.confirm_membership()).await {
                Ok(Ok(Some(joined))) => return joined,
                // Another group was faster, or there was no response in time.
                Ok(Ok(None)) | Err(_) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "cannot write the membership Lease; retrying");
                }
            }
        }
    }

    /// Writes the membership Lease, and then the one of the group: see [`GroupLock::release_if_alone`].
    async fn confirm_membership(&self) -> Result<Option<Instant>, kube::Error> {
        let member = self.member();
        let lease = member.read().await?;
        if member.write(lease.as_ref()).await?.is_none() {
            return Ok(None);
        }
        self.group.forget();
        self.group.renew().await
    }

    /// Removes what this replica has left behind, after all its work has ended.
    async fn leave(&self) {
        let table = self.table();
        let left = async {
            // In this order, the last of several replicas that end at the same time finds no other.
            table.delete_member().await?;
            self.group.release_if_alone(table.is_alone()).await
        };
        match timeout(RENEW_DEADLINE, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not release the Lease of the group; it will expire");
            }
            Err(_) => tracing::warn!("could not release the Lease of the group; it will expire"),
        }
    }

    /// Holds shards and runs the controllers and the tasks of the leader until a signal ends it.
    async fn work<C: Future<Output = ()>, L: Future<Output = ()>>(
        &self,
        ending: watch::Receiver<bool>,
        controllers: &impl Fn(watch::Receiver<bool>) -> C,
        leader: &impl Fn(watch::Receiver<bool>) -> L,
    ) {
        let leadership = self.tasks.leadership().and(&self.of_group);
        let of_leader = |ending| leadership.clone().scope(leader(ending));
        tokio::join!(
            self.hold_shards(ending.clone()),
            controllers(ending.clone()),
            self.tasks.run(ending, of_leader),
        );
    }

    /// Holds shards until a signal ends it and all of them are released.
    async fn hold_shards(&self, ending: watch::Receiver<bool>) {
        let (sender, mut acquired) = mpsc::unbounded_channel();
        let mut balance = pin!(self.balance(sender, ending));
        let mut is_balanced = true;
        let mut held = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = &mut balance, if is_balanced => is_balanced = false,
                Some((shard, renewed, leadership)) = acquired.recv() => {
                    held.push(self.hold(shard, renewed, leadership));
                }
                Some(()) = held.next() => {}
                else => return,
            }
        }
    }

    /// Acquires and releases shards so that every replica has its share, until a signal ends it.
    async fn balance(
        &self,
        acquired: mpsc::UnboundedSender<Acquired>,
        mut ending: watch::Receiver<bool>,
    ) {
        let mut table = self.table();
        let mut ticks = retry_interval();
        // Replicas that start at the same time see each other before they acquire shards.
        ticks.tick().await;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = ending.wait_for(|ending| *ending) => break,
            }
            // Not interrupted: a shard that was acquired is held.
            match self.rebalance(&mut table, &ending).await {
                Ok(all) => {
                    for one in all {
                        // The receiver lives as long as this future.
                        let _ = acquired.send(one);
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot read the Leases; retrying"),
            }
        }
        self.shards.suspend_all();
        if let Err(error) = self.announce_end(&mut table).await {
            tracing::debug!(%error, "the membership Lease is not released");
        }
    }

    /// Renews the membership and carries out the next step towards the balance. Returns the shards that were acquired.
    async fn rebalance(
        &self,
        table: &mut LeaseTable,
        ending: &watch::Receiver<bool>,
    ) -> Result<Vec<Acquired>, kube::Error> {
        let view = table.read().await?;
        self.member().write(view.member()).await?;
        if *ending.borrow() {
            return Ok(Vec::new());
        }
        let held: BTreeMap<_, _> = self.shards.held().into_iter().collect();
        let situation = Situation {
            identity: &self.identity,
            replicas: &view.replicas,
            holders: &view.holders,
            held: &held,
        };
        let plan = situation.plan();
        for shard in plan.release {
            let replicas = view.replicas.len();
            tracing::info!(shard, replicas, "releases a shard");
            self.shards.suspend(shard);
        }
        let attempts = plan.acquire.into_iter().map(async |shard| {
            let started = Instant::now();
            match self.shard(shard).write(view.shard(shard)).await {
                Ok(written) => written.map(|_| {
                    let leadership = Leadership::pending();
                    leadership.extend_until(started + LEASE_DURATION);
                    (shard, started, leadership)
                }),
                Err(error) => {
                    tracing::warn!(%error, shard, "cannot acquire a shard; retrying");
                    None
                }
            }
        });
        let acquired: Vec<Acquired> = join_all(attempts).await.into_iter().flatten().collect();
        if !acquired.is_empty() {
            let shards = acquired.iter();
            let shards: Vec<_> = shards.map(|(shard, ..)| *shard).collect();
            tracing::info!(?shards, "acquired shards");
            let deadlines = acquired.iter();
            let deadlines =
                deadlines.map(|(shard, _, deadline)| (*shard, deadline.and(&self.of_group)));
            self.shards.acquire(deadlines);
        }
        Ok(acquired)
    }

    /// Tells the other replicas that this one takes no shards any more. The membership Lease itself stays until all
    /// reconciliations have ended.
    async fn announce_end(&self, table: &mut LeaseTable) -> Result<(), kube::Error> {
        let view = table.read().await?;
        if let Some(lease) = view.member() {
            self.member().write_released(lease.clone()).await?;
        }
        Ok(())
    }

    /// Holds a shard until it is suspended and its last reconciliation has ended, or until its Lease is lost.
    async fn hold(&self, shard: u32, renewed: Instant, leadership: Leadership) {
        let lock = self.shard(shard);
        let gauge = self.metrics.of(lock.name());
        gauge.set(1);
        let extend = |renewed: Instant| leadership.extend_until(renewed + LEASE_DURATION);
        let last_renewal = tokio::select! {
            last = lock.renew_until_lost(renewed, extend) => Some(last),
            () = self.shards.drained(shard) => None,
            () = self.drain_is_overdue(shard) => {
                tracing::error!(
                    shard,
                    "dropped reconciliations that do not end; the shard changes its holder when its lease expires"
                );
                self.shards.revoke(shard);
                self.shards.drained(shard).await;
                leadership.end();
                // Not released: a call that was sent may be executed until the Lease expires.
                self.shards.remove(shard);
                gauge.set(0);
                return;
            }
        };
        if let Some(last_renewal) = last_renewal {
            tracing::error!(shard, "the lease of a shard could not be renewed");
            self.shards.suspend(shard);
            let before_expiry = last_renewal + LEASE_DURATION - REVOKE_BEFORE_EXPIRY;
            let drained = timeout_at(before_expiry, self.shards.drained(shard)).await;
            if drained.is_err() {
                self.shards.revoke(shard);
                self.shards.drained(shard).await;
            }
            leadership.end();
        } else {
            leadership.end();
            lock.release().await;
        }
        self.shards.remove(shard);
        gauge.set(0);
        tracing::info!(shard, "no longer holds a shard");
    }

    /// Returns once a shard has been suspended for so long that its reconciliations must have ended.
    async fn drain_is_overdue(&self, shard: u32) {
        self.shards.suspended(shard).await;
        tokio::time::sleep(MAX_DRAIN).await;
    }

    fn table(&self) -> LeaseTable {
        let client = self.client.clone();
        LeaseTable::new(client, &self.namespace, self.names.clone(), &self.identity)
    }

    fn shard(&self, shard: u32) -> LeaseLock {
        self.lock(&self.names.shard(shard))
    }

    fn member(&self) -> LeaseLock {
        self.lock(&self.names.replica(&self.identity))
    }

    fn lock(&self, lease: &str) -> LeaseLock {
        let client = self.client.clone();
        let lock = LeaseLock::new(client, &self.namespace, lease, &self.identity);
        lock.with_labels(self.names.labels())
    }
}
