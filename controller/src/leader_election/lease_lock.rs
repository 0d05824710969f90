//! Lock on a Lease: acquisition, renewal and release by one identity.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout, timeout_at};

/// Time that the other candidates wait after the latest renewal before one of them takes over. These values are
/// those of Kubernetes' own controllers.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);

/// Time that the leader continues without a successful renewal. Its work must end in the remaining time of the
/// lease.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// Interval at which the leader renews the lease and the other candidates read it.
pub(crate) const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Lock that must be renewed.
pub(crate) trait Lock: Sync {
    /// Returns the name of the Lease.
    fn name(&self) -> &str;

    /// Tries to acquire the lock once. Returns a time before the write that acquired it.
    fn try_acquire(
        &self,
        other_holder: &mut Option<OtherHolder>,
    ) -> impl Future<Output = Result<Option<Instant>, kube::Error>> + Send;

    /// Renews the lock once. Returns a time before the write that renewed it, and none if another candidate holds it.
    fn renew(&self) -> impl Future<Output = Result<Option<Instant>, kube::Error>> + Send;

    /// Returns once the lock is acquired, with a time before the write that acquired it.
    fn acquire(&self) -> impl Future<Output = Instant> + Send {
        async {
            let mut other_holder: Option<OtherHolder> = None;
            let mut retries = retry_interval();
            loop {
                retries.tick().await;
                match self.try_acquire(&mut other_holder).await {
                    Ok(Some(acquired)) => return acquired,
                    Ok(None) => {}
                    Err(error) => {
                        let lease = self.name();
                        tracing::warn!(%error, lease, "cannot read the lease; retrying");
                    }
                }
            }
        }
    }

    /// Renews the lock until that fails, and returns the time of the last successful renewal. Calls a function after
    /// each renewal with its time.
    fn renew_until_lost(
        &self,
        mut renewed: Instant,
        mut on_renewal: impl FnMut(Instant) + Send,
    ) -> impl Future<Output = Instant> + Send {
        async move {
            let mut renewals = retry_interval();
            loop {
                renewals.tick().await;
                match timeout_at(renewed + RENEW_DEADLINE, self.renew()).await {
                    Ok(Ok(Some(now))) => {
                        renewed = now;
                        on_renewal(renewed);
                    }
                    // Another replica holds the lease, or there was no response in time.
                    Ok(Ok(None)) | Err(_) => return renewed,
                    Ok(Err(error)) => {
                        let lease = self.name();
                        tracing::warn!(%error, lease, "cannot renew the lease; retrying");
                    }
                }
                if Instant::now() >= renewed + RENEW_DEADLINE {
                    return renewed;
                }
            }
        }
    }
}

/// Another holder of the lease, and the time since which it has not renewed.
///
/// Only changes of the lease count, measured by this process' monotonic clock: the clocks of two machines are
/// never compared.
pub(crate) struct OtherHolder {
    resource_version: Option<String>,
    since: Instant,
}

impl OtherHolder {
    /// Returns the time for which the lease has not changed.
    pub(crate) fn unchanged_for(&self) -> Duration {
        self.since.elapsed()
    }

    /// Compares the current state of a lease, which was read before now, with the one that was read before. Returns true
    /// if the holder has not renewed it for the duration of the lease.
    ///
    /// The time counts from the end of the read that has delivered the state: the holder may have renewed the lease after
    /// that read began.
    pub(crate) fn has_expired(seen: &mut Option<Self>, lease: &Lease) -> bool {
        let resource_version = lease.metadata.resource_version.clone();
        match seen {
            Some(seen) if seen.resource_version == resource_version => {
                seen.since.elapsed() >= LEASE_DURATION
            }
            _ => {
                let since = Instant::now();
                *seen = Some(Self {
                    resource_version,
                    since,
                });
                false
            }
        }
    }
}

/// Lock on a Lease by one candidate.
pub(crate) struct LeaseLock {
    leases: Api<Lease>,
    name: String,
    identity: String,
    labels: Option<BTreeMap<String, String>>,
}

impl LeaseLock {
    /// Returns the lock of a candidate whose identity no other candidate has.
    pub(crate) fn new(client: Client, namespace: &str, lease: &str, identity: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            name: lease.to_owned(),
            identity: identity.to_owned(),
            labels: None,
        }
    }

    /// Sets the labels that the Lease gets with each write.
    pub(crate) fn with_labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels = Some(labels);
        self
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Reads the Lease.
    pub(crate) async fn read(&self) -> Result<Option<Lease>, kube::Error> {
        self.leases.get_opt(&self.name).await
    }

    /// Returns true if this candidate is the holder.
    pub(crate) fn is_holder(&self, lease: &Lease) -> bool {
        holder(lease) == Some(&self.identity)
    }

    /// Writes this candidate as the holder of a new Lease or of an existing one, in the state that was read. Returns none
    /// if another candidate was faster.
    pub(crate) async fn write(&self, lease: Option<&Lease>) -> Result<Option<Lease>, kube::Error> {
        let claim = self.lease_for_self(lease);
        let params = PostParams::default();
        let written = match lease {
            Some(_) => self.leases.replace(&self.name, &params, &claim).await,
            None => self.leases.create(&params, &claim).await,
        };
        match written {
            Ok(written) => Ok(Some(written)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Releases the lease, so that the next leader need not wait until it expires.
    pub(crate) async fn release(&self) {
        let released = async {
            loop {
                let lease = self.leases.get(&self.name).await?;
                match self.write_released(lease).await {
                    // A renewal that was interrupted has been faster.
                    Err(kube::Error::Api(status)) if status.code == 409 => {}
                    released => return released,
                }
            }
        };
        if !matches!(timeout(RETRY_PERIOD, released).await, Ok(Ok(()))) {
            tracing::warn!(
                lease = self.name,
                "could not release the lease; it will expire"
            );
        }
    }

    /// Removes this candidate as the holder of a Lease, in the state that was read. A conflict is an error.
    pub(crate) async fn write_released(&self, mut lease: Lease) -> Result<(), kube::Error> {
        if let Some(spec) = &mut lease.spec
            && spec.holder_identity.as_ref() == Some(&self.identity)
        {
            spec.holder_identity = None;
            self.leases
                .replace(&self.name, &PostParams::default(), &lease)
                .await?;
        }
        Ok(())
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
                labels: self.labels.clone(),
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

impl Lock for LeaseLock {
    fn name(&self) -> &str {
        &self.name
    }

    async fn try_acquire(
        &self,
        other_holder: &mut Option<OtherHolder>,
    ) -> Result<Option<Instant>, kube::Error> {
        let started = Instant::now();
        let Ok(lease) = timeout(RETRY_PERIOD, self.read()).await else {
            return Ok(None);
        };
        let lease = lease?;
        if let Some(lease) = &lease
            && let Some(holder) = holder(lease)
            && holder != &self.identity
        {
            if other_holder.is_none() {
                let (holder, lease) = (holder.as_str(), &self.name);
                tracing::info!(
                    holder,
                    lease,
                    "another replica holds the lease; waiting for it"
                );
            }
            if !OtherHolder::has_expired(other_holder, lease) {
                return Ok(None);
            }
        }
        let written = self.write(lease.as_ref()).await?;
        Ok(written.map(|_| started))
    }

    async fn renew(&self) -> Result<Option<Instant>, kube::Error> {
        let started = Instant::now();
        let lease = self.leases.get(&self.name).await?;
        if !self.is_holder(&lease) {
            return Ok(None);
        }
        let written = self.write(Some(&lease)).await?;
        Ok(written.map(|_| started))
    }
}

/// Returns the holder of a Lease, if it has one.
pub(crate) fn holder(lease: &Lease) -> Option<&String> {
    let holder = lease.spec.as_ref()?.holder_identity.as_ref();
    holder.filter(|holder| !holder.is_empty())
}

pub(crate) fn retry_interval() -> Interval {
    let mut ticks = interval(RETRY_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;

    /// Returns a client of an API server with one Lease, whose responses take a second to arrive.
    fn client(lease: &Arc<Mutex<Value>>) -> Client {
        let lease = Arc::clone(lease);
        let server = tower::service_fn(move |request: http::Request<Body>| {
            let lease = Arc::clone(&lease);
            async move {
                let is_read = request.method() == http::Method::GET;
                if !is_read {
                    let body = request.into_body().collect_bytes().await?;
                    *lease.lock() = serde_json::from_slice(&body)?;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
                let response = lease.lock().to_string();
                tokio::time::sleep(Duration::from_millis(500)).await;
                let response = http::Response::new(Body::from(response.into_bytes()));
                Ok::<_, tower::BoxError>(response)
            }
        });
        Client::new(server, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_during_the_read_of_another_candidate_postpones_the_takeover() {
        let lease = |version: &str, holder: &str| {
            json!({
                "metadata": {"name": "l", "resourceVersion": version},
                "spec": {"holderIdentity": holder},
            })
        };
        let stored = Arc::new(Mutex::new(lease("1", "a")));
        let candidate = LeaseLock::new(client(&stored), "default", "l", "b");
        let started = Instant::now();
        let renewal = async {
            // After the candidate has sent its request, and before the API server processes it.
            tokio::time::sleep(Duration::from_millis(400)).await;
            *stored.lock() = lease("2", "a");
            Instant::now()
        };
        let (acquired, renewed) = tokio::join!(candidate.acquire(), renewal);
        let expires = renewed + LEASE_DURATION;
        assert!(
            acquired >= expires,
            "acquired after {:?}, {:?} before the lease expires",
            acquired - started,
            expires - acquired
        );
        assert_eq!(stored.lock()["spec"]["holderIdentity"], "b");
    }
}
