//! Leader election by a Lease.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};

use crate::leader_election::leadership::Leadership;

/// Time that the other candidates wait after the latest renewal before one of them takes over. These values are
/// those of Kubernetes' own controllers.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// Time that the leader continues without a successful renewal. Its work must end in the remaining time of the
/// lease.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// Interval at which the leader renews the lease and the other candidates read it.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

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

    fn of(&self, lease: &str) -> Gauge {
        let name = lease.to_owned();
        self.leads.get_or_create_owned(&Labels { name })
    }
}

/// Candidate in a leader election.
pub struct LeaderElector {
    leases: Api<Lease>,
    name: String,
    identity: String,
    leads: Gauge,
    leadership: Leadership,
}

/// Another holder of the lease, and the time since which it has not renewed.
///
/// Only changes of the lease count, measured by this process' monotonic clock: the clocks of two machines are
/// never compared.
struct OtherHolder {
    resource_version: Option<String>,
    since: Instant,
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
            leases: Api::namespaced(client, namespace),
            name: lease.to_owned(),
            identity: identity.to_owned(),
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
                renewed = self.acquire() => renewed,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            tracing::info!(
                lease = self.name,
                identity = self.identity,
                "became the leader"
            );
            self.leads.set(1);
            self.leadership.extend_until(renewed + LEASE_DURATION);
            let (end, ending) = watch::channel(false);
            let mut work = std::pin::pin!(work(ending));
            let last_renewal = tokio::select! {
                last = self.renew_until_lost(renewed) => Some(last),
                _ = stop.wait_for(|stop| *stop) => None,
                () = &mut work => return,
            };
            end.send_replace(true);
            let Some(last_renewal) = last_renewal else {
                // The lease is valid for its duration even if it is not renewed; the work must end in that time.
                let _ = timeout(RENEW_DEADLINE, work).await;
                self.leads.set(0);
                self.leadership.end();
                return self.release().await;
            };
            tracing::error!(
                lease = self.name,
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

    /// Returns once this candidate holds the lease, with the time of the attempt that acquired it.
    async fn acquire(&self) -> Instant {
        let mut other_holder: Option<OtherHolder> = None;
        let mut retries = retry_interval();
        loop {
            retries.tick().await;
            let now = Instant::now();
            match self.try_acquire(&mut other_holder, now).await {
                Ok(true) => return now,
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, lease = self.name, "cannot read the lease; retrying");
                }
            }
        }
    }

    async fn try_acquire(
        &self,
        other_holder: &mut Option<OtherHolder>,
        now: Instant,
    ) -> Result<bool, kube::Error> {
        let Some(lease) = timeout(RETRY_PERIOD, self.leases.get_opt(&self.name))
            .await
            .unwrap_or(Ok(None))?
        else {
            return acquired(
                self.leases
                    .create(&PostParams::default(), &self.lease_for_self(None))
                    .await,
            );
        };
        let holder = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default();
        let is_free = holder.is_empty() || holder == self.identity;
        if !is_free {
            let version = lease.metadata.resource_version.clone();
            match other_holder {
                Some(seen) if seen.resource_version == version => {
                    if now.duration_since(seen.since) < LEASE_DURATION {
                        return Ok(false);
                    }
                }
                _ => {
                    if other_holder.is_none() {
                        tracing::info!(
                            holder,
                            lease = self.name,
                            "another replica holds the lease; waiting for it"
                        );
                    }
                    *other_holder = Some(OtherHolder {
                        resource_version: version,
                        since: now,
                    });
                    return Ok(false);
                }
            }
        }
        self.write_lease(&lease).await
    }

    /// Renews the lease until that fails, and returns the time of the last successful renewal.
    async fn renew_until_lost(&self, mut renewed: Instant) -> Instant {
        let mut renewals = retry_interval();
        loop {
            renewals.tick().await;
            let now = Instant::now();
            let deadline = renewed + RENEW_DEADLINE;
            match timeout_at(deadline, self.renew()).await {
                Ok(Ok(true)) => {
                    renewed = now;
                    self.leadership.extend_until(renewed + LEASE_DURATION);
                }
                // Another replica holds the lease, or there was no response in time.
                Ok(Ok(false)) | Err(_) => return renewed,
                Ok(Err(error)) => {
                    tracing::warn!(%error, lease = self.name, "cannot renew the lease; retrying");
                }
            }
            if Instant::now() >= deadline && renewed != now {
                return renewed;
            }
        }
    }

    async fn renew(&self) -> Result<bool, kube::Error> {
        let lease = self.leases.get(&self.name).await?;
        let ours = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_ref())
            == Some(&self.identity);
        if !ours {
            return Ok(false);
        }
        self.write_lease(&lease).await
    }

    /// Writes this candidate as the holder of an existing lease. Returns false if another candidate was faster.
    async fn write_lease(&self, lease: &Lease) -> Result<bool, kube::Error> {
        let claim = self.lease_for_self(Some(lease));
        acquired(
            self.leases
                .replace(&self.name, &PostParams::default(), &claim)
                .await,
        )
    }

    /// Releases the lease, so that the next leader need not wait until it expires.
    async fn release(&self) {
        let released = async {
            let mut lease = self.leases.get(&self.name).await?;
            if let Some(spec) = &mut lease.spec
                && spec.holder_identity.as_ref() == Some(&self.identity)
            {
                spec.holder_identity = None;
                self.leases
                    .replace(&self.name, &PostParams::default(), &lease)
                    .await?;
            }
            Ok::<_, kube::Error>(())
        };
        if !matches!(timeout(RETRY_PERIOD, released).await, Ok(Ok(()))) {
            tracing::warn!(
                lease = self.name,
                "could not release the lease; it will expire"
            );
        }
    }

    /// Returns the lease with this candidate as its holder. It contains the resource version that was read: of two
    /// candidates that write concurrently, one fails.
    fn lease_for_self(&self, lease: Option<&Lease>) -> Lease {
        let old = lease
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let changes_hands = old.holder_identity.as_ref() != Some(&self.identity);
        let now = MicroTime(Timestamp::now());
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: lease.and_then(|lease| lease.metadata.resource_version.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
                acquire_time: if changes_hands {
                    Some(now.clone())
                } else {
                    old.acquire_time
                },
                renew_time: Some(now),
                lease_transitions: Some(
                    old.lease_transitions.unwrap_or_default() + i32::from(changes_hands),
                ),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// Returns true if a write succeeded, and false on a conflict: another candidate was faster.
fn acquired(written: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

fn retry_interval() -> tokio::time::Interval {
    let mut ticks = interval(RETRY_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
