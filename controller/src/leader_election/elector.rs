//! Leader election by a Lease.

use kube::Client;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::leader_election::leadership::Leadership;
use crate::leader_election::lease_lock::{LEASE_DURATION, LeaseLock, Lock, RENEW_DEADLINE};

/// Prometheus metric for leader election, with client-go's name.
#[derive(Clone)]
pub struct LeaderElectionMetrics {
    leads: Family<Labels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: String,
}

impl LeaderElectionMetrics {
    /// Registers the metric.
    pub fn register(registry: &mut Registry) -> Self {
        let leads = Family::default();
        let help = "1 if this replica holds the lease of that name, 0 otherwise";
        registry.register("leader_election_master_status", help, Family::clone(&leads));
        Self { leads }
    }

    pub(crate) fn of(&self, lease: &str) -> Gauge {
        let name = lease.to_owned();
        self.leads.get_or_create_owned(&Labels { name })
    }
}

/// Candidate in a leader election.
///
/// ```no_run
/// use kube::Client;
/// use lockstep_controller::{LeaderElectionMetrics, LeaderElector};
/// use prometheus_client::registry::Registry;
/// use tokio::sync::watch;
///
/// # async fn lead(client: Client, stop: watch::Receiver<bool>) {
/// let metrics = LeaderElectionMetrics::register(&mut Registry::default());
/// let elector = LeaderElector::new(client, "operators", "greeter-controller", "pod-1", &metrics);
/// let work = async |mut end: watch::Receiver<bool>| {
///     // Reconciles until the term ends.
///     end.wait_for(|end| *end).await.ok();
/// };
/// elector.run(stop, work).await;
/// # }
/// ```
pub struct LeaderElector {
    lock: LeaseLock,
    leads: Gauge,
    leadership: Leadership,
}

impl LeaderElector {
    /// Returns a candidate with an identity that no other replica has, such as the name of its Pod.
    pub fn new(
        client: Client,
        namespace: &str,
        lease: &str,
        identity: &str,
        metrics: &LeaderElectionMetrics,
    ) -> Self {
        let leads = metrics.of(lease);
        leads.set(0);
        Self {
            leads,
            leadership: Leadership::pending(),
            lock: LeaseLock::new(client, namespace, lease, identity),
        }
    }

    /// Returns the time until which this candidate is certain to be the only leader.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Leads whenever it can, until `stop` turns true.
    ///
    /// `work` is called for each term and receives a signal that turns true when it has to end.
    ///
    /// # Guarantees
    ///
    /// The work has ended, or was dropped, before the lease that it runs under expires. After a lost lease the
    /// candidate tries to acquire it again.
    pub async fn run<W: Future<Output = ()>>(
        &self,
        mut stop: watch::Receiver<bool>,
        work: impl Fn(watch::Receiver<bool>) -> W,
    ) {
        loop {
            let renewed = tokio::select! {
                renewed = self.lock.acquire() => renewed,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            tracing::info!(
                lease = self.lock.name(),
                identity = self.lock.identity(),
                "became the leader"
            );
            self.leads.set(1);
            let renewed_at = Mutex::new(renewed);
            let extend = |renewed: Instant| {
                *renewed_at.lock() = renewed;
                self.leadership.extend_until(renewed + LEASE_DURATION);
            };
            extend(renewed);
            let (end, ending) = watch::channel(false);
            let mut work = std::pin::pin!(work(ending));
            let last_renewal = tokio::select! {
                last = self.lock.renew_until_lost(renewed, extend) => Some(last),
                _ = stop.wait_for(|stop| *stop) => None,
                () = &mut work => return,
            };
            end.send_replace(true);
            let Some(last_renewal) = last_renewal else {
                // The lease is valid for its duration even if it is not renewed; the work must end in that time. The
                // latest renewal may have been some time ago.
                let expires = *renewed_at.lock() + LEASE_DURATION;
                let _ = timeout_at(expires.min(Instant::now() + RENEW_DEADLINE), work).await;
                self.leads.set(0);
                self.leadership.end();
                return self.lock.release().await;
            };
            tracing::error!(
                lease = self.lock.name(),
                "the lease could not be renewed; stopping all work"
            );
            if timeout_at(last_renewal + LEASE_DURATION, work)
                .await
                .is_err()
            {
                tracing::warn!("work was stopped before it finished, since the lease expires");
            }
            self.leads.set(0);
            self.leadership.end();
        }
    }
}
