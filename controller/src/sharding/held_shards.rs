//! Shards that this replica holds, and the reconciliations of their objects.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::leader_election::Leadership;
use crate::sharding::hash::shard_of;

/// Interval at which a running reconciliation compares the time with the deadline of its shard, even if nothing else wakes
/// it.
const DEADLINE_CHECKS: Duration = Duration::from_millis(200);

/// Shards that this replica holds. Clones share the state.
///
/// # Guarantees
///
/// A reconciliation begins only while the Lease of the shard is held and not about to be released. The Lease is released
/// only after the last reconciliation has ended, and a reconciliation is dropped before the Lease expires.
#[derive(Clone)]
pub struct Shards(Arc<Inner>);

struct Inner {
    count: NonZeroU32,
    held: Mutex<BTreeMap<u32, Arc<HeldShard>>>,
    /// Number of times that shards were acquired. All that are acquired together have the same number.
    acquisitions: watch::Sender<u64>,
    /// Number of shards that were released.
    releases: watch::Sender<u64>,
}

struct HeldShard {
    acquisition: u64,
    leadership: Leadership,
    state: watch::Sender<ShardState>,
    /// If true, running reconciliations are dropped.
    is_revoked: watch::Sender<bool>,
}

#[derive(Clone, Copy, Default)]
struct ShardState {
    /// If true, no reconciliation begins any more.
    is_suspended: bool,
    /// Number of running reconciliations.
    running: usize,
}

/// Permission to reconcile an object of a shard, for as long as it exists.
pub(crate) struct ShardPermit(Arc<HeldShard>);

impl Shards {
    /// Returns the state of a replica that holds no shard yet.
    pub fn new(count: NonZeroU32) -> Self {
        Self(Arc::new(Inner {
            count,
            held: Mutex::default(),
            acquisitions: watch::Sender::default(),
            releases: watch::Sender::default(),
        }))
    }

    /// Returns the number of shards of all replicas.
    pub(crate) fn count(&self) -> NonZeroU32 {
        self.0.count
    }

    /// Returns the number of acquisitions.
    pub(crate) fn acquisitions(&self) -> watch::Receiver<u64> {
        self.0.acquisitions.subscribe()
    }

    /// Returns the number of releases.
    pub(crate) fn releases(&self) -> watch::Receiver<u64> {
        self.0.releases.subscribe()
    }

    /// Returns true if this replica holds the shard of an object.
    pub(crate) fn holds(&self, uid: &str) -> bool {
        self.acquisition_of(uid).is_some()
    }

    /// Returns the number of the acquisition of an object's shard, if this replica holds it.
    pub(crate) fn acquisition_of(&self, uid: &str) -> Option<u64> {
        let shard = shard_of(uid, self.0.count);
        Some(self.0.held.lock().get(&shard)?.acquisition)
    }

    /// Begins a reconciliation of an object. Returns none if this replica does not hold its shard, if it is about to release
    /// it, or if the shard was acquired later than with this number.
    pub(crate) fn permit(&self, uid: &str, up_to_acquisition: u64) -> Option<ShardPermit> {
        let shard = shard_of(uid, self.0.count);
        let held = self.get(shard)?;
        if held.acquisition > up_to_acquisition {
            return None;
        }
        let has_begun = held.state.send_if_modified(|state| {
            state.running += usize::from(!state.is_suspended);
            !state.is_suspended
        });
        // The permit ends what has begun, and must not exist otherwise.
        has_begun.then(|| ShardPermit(held))
    }

    /// Returns the shards that this replica holds, and those of them that it is about to release.
    pub(crate) fn held(&self) -> Vec<(u32, bool)> {
        let held = self.0.held.lock();
        let held = held.iter();
        held.map(|(shard, held)| (*shard, held.state.borrow().is_suspended))
            .collect()
    }

    /// Records that this replica has acquired shards, each with its deadline.
    pub(crate) fn acquire(&self, shards: impl IntoIterator<Item = (u32, Leadership)>) {
        let acquisition = *self.0.acquisitions.borrow() + 1;
        let mut held = self.0.held.lock();
        for (shard, leadership) in shards {
            let acquired = HeldShard {
                acquisition,
                leadership,
                state: watch::Sender::default(),
                is_revoked: watch::Sender::default(),
            };
            held.insert(shard, Arc::new(acquired));
        }
        drop(held);
        // Published last: a controller that lists the objects from now on gets those of the shards.
        self.0.acquisitions.send_replace(acquisition);
    }

    /// Prevents further reconciliations of a shard, which is about to be released.
    pub(crate) fn suspend(&self, shard: u32) {
        if let Some(held) = self.get(shard) {
            held.state.send_modify(|state| state.is_suspended = true);
        }
    }

    /// Prevents all further reconciliations.
    pub(crate) fn suspend_all(&self) {
        for (shard, _) in self.held() {
            self.suspend(shard);
        }
    }

    /// Drops the running reconciliations of a shard, and prevents further ones.
    pub(crate) fn revoke(&self, shard: u32) {
        self.suspend(shard);
        if let Some(held) = self.get(shard) {
            held.is_revoked.send_replace(true);
        }
    }

    /// Drops all running reconciliations, and prevents further ones.
    pub(crate) fn revoke_all(&self) {
        for (shard, _) in self.held() {
            self.revoke(shard);
        }
    }

    /// Waits until a shard is suspended.
    pub(crate) async fn suspended(&self, shard: u32) {
        self.wait_for(shard, |state| state.is_suspended).await;
    }

    /// Waits until a shard is suspended and none of its reconciliations is running.
    pub(crate) async fn drained(&self, shard: u32) {
        let is_drained = |state: &ShardState| state.is_suspended && state.running == 0;
        self.wait_for(shard, is_drained).await;
    }

    /// Records that this replica no longer holds a shard. Its objects leave the caches.
    pub(crate) fn remove(&self, shard: u32) {
        self.0.held.lock().remove(&shard);
        self.0.releases.send_modify(|releases| *releases += 1);
    }

    /// Records that this replica holds no shard any more, and returns those that it has held.
    pub(crate) fn remove_all(&self) -> Vec<u32> {
        let held = std::mem::take(&mut *self.0.held.lock());
        if !held.is_empty() {
            self.0.releases.send_modify(|releases| *releases += 1);
        }
        held.into_keys().collect()
    }

    fn get(&self, shard: u32) -> Option<Arc<HeldShard>> {
        self.0.held.lock().get(&shard).cloned()
    }

    async fn wait_for(&self, shard: u32, is_met: impl FnMut(&ShardState) -> bool) {
        if let Some(held) = self.get(shard) {
            // The sender lives as long as this.
            let _ = held.state.subscribe().wait_for(is_met).await;
        }
    }
}

impl ShardPermit {
    /// Runs a reconciliation until it ends or the deadline of the shard comes. Returns none if it was dropped.
    pub(crate) async fn run<F: Future>(&self, reconciliation: F) -> Option<F::Output> {
        let mut is_revoked = self.0.is_revoked.subscribe();
        let revoked = async {
            // The sender lives as long as this permit.
            let _ = is_revoked.wait_for(|is_revoked| *is_revoked).await;
        };
        let mut revoked = pin!(revoked);
        let mut checks = deadline_checks();
        let work = self.0.leadership.clone().scope(reconciliation);
        let mut work = pin!(work);
        // The time is compared before each step of the reconciliation: a process that was suspended by its machine takes
        // no further step after the deadline.
        std::future::poll_fn(move |context| {
            while checks.poll_tick(context).is_ready() {}
            let is_revoked = revoked.as_mut().poll(context).is_ready();
            if is_revoked || !self.0.leadership.outlasts(Duration::ZERO) {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }
}

impl Drop for ShardPermit {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.running -= 1);
    }
}

fn deadline_checks() -> Interval {
    let mut checks = interval(DEADLINE_CHECKS);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    checks
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::FutureExt;
    use tokio::time::{Instant, advance, sleep};

    use super::*;

    /// Returns a replica that has acquired the only shard, with the deadline of the shard.
    fn shards() -> (Shards, Leadership) {
        let shards = Shards::new(NonZeroU32::MIN);
        let leadership = Leadership::pending();
        leadership.extend_until(Instant::now() + Duration::from_secs(15));
        shards.acquire([(0, leadership.clone())]);
        (shards, leadership)
    }

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_drained_when_it_is_suspended_and_its_last_reconciliation_has_ended() {
        let (shards, _) = shards();
        let permit = shards.permit("a", 1).expect("the shard is held");
        let other = shards.permit("b", 1).expect("the shard is held");
        assert!(shards.drained(0).now_or_never().is_none(), "not suspended");
        shards.suspend(0);
        assert!(shards.permit("c", 1).is_none(), "it is suspended");
        drop(permit);
        assert!(shards.drained(0).now_or_never().is_none(), "one is left");
        drop(other);
        assert!(shards.drained(0).now_or_never().is_some());
        assert!(shards.holds("a"), "the Lease is not released yet");
        shards.remove(0);
        assert!(!shards.holds("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_waits_until_the_objects_of_its_shard_are_listed() {
        let (shards, leadership) = shards();
        assert!(shards.permit("a", 0).is_none());
        assert!(shards.permit("a", 1).is_some());
        shards.remove(0);
        shards.acquire([(0, leadership)]);
        assert!(shards.permit("a", 1).is_none(), "acquired again");
        assert!(shards.permit("a", 2).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconciliation_takes_no_step_after_the_deadline() {
        let (shards, leadership) = shards();
        let permit = shards.permit("a", 1).expect("the shard is held");
        let steps = AtomicU32::new(0);
        let reconciliation = async {
            loop {
                steps.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(2)).await;
            }
        };
        let mut running = Box::pin(permit.run::<_>(reconciliation));
        for expected in 1..=3 {
            assert!(running.as_mut().now_or_never().is_none());
            assert_eq!(steps.load(Ordering::Relaxed), expected);
            advance(Duration::from_secs(2)).await;
        }
        // The process is suspended until another replica may have acquired the shard.
        advance(Duration::from_secs(20)).await;
        let none: Option<()> = running.await;
        assert_eq!((none, steps.load(Ordering::Relaxed)), (None, 3));
        leadership.extend_until(Instant::now() + Duration::from_secs(15));
        let mut running = Box::pin(permit.run(std::future::pending::<()>()));
        assert!(running.as_mut().now_or_never().is_none());
        shards.revoke(0);
        assert!(running.now_or_never().is_some(), "it is dropped at once");
    }
}
