//! Leases of the leader election and of the shards.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;

use crate::installation::Installation;

/// State of the leader election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// No controller has run since the installation, or the Lease was deleted.
    NoLease,
    /// The last leader has released the Lease, and no other controller has acquired it for the duration of the Lease.
    Released,
    /// The last leader has just released the Lease, such as in a rolling update: the next one acquires it within seconds.
    Handover,
    /// The last leader has not renewed the Lease in time: it was killed or cannot reach the API server.
    Expired { holder: String, renewed: Timestamp },
    /// A controller runs.
    Held {
        holder: String,
        since: Option<Timestamp>,
    },
}

impl Leader {
    /// Reads the Lease of an installation.
    pub(crate) async fn read(installation: &Installation<'_>) -> Result<Self, kube::Error> {
        let client = installation.client.clone();
        let leases: Api<Lease> = Api::namespaced(client, &installation.home);
        let lease = leases.get_opt(installation.names.lease()).await?;
        Ok(lease.map_or(Self::NoLease, |lease| Self::of(lease, Timestamp::now())))
    }

    /// Reads the Leases of the shards, in their order, if replicas share the objects by shards.
    pub(crate) async fn read_shards(
        &self,
        installation: &Installation<'_>,
    ) -> Result<Vec<Self>, kube::Error> {
        let leases: Api<Lease> = Api::namespaced(installation.client.clone(), &installation.home);
        let mut shards = Vec::new();
        for shard in 0..self.shards().unwrap_or_default() {
            let name = format!("{}-shard-{shard}", installation.names.lease());
            let lease = leases.get_opt(&name).await?;
            shards.push(lease.map_or(Self::NoLease, |lease| Self::of(lease, Timestamp::now())));
        }
        Ok(shards)
    }

    /// Returns the number of shards, if the Lease is held by all replicas with that number.
    fn shards(&self) -> Option<u32> {
        match self {
            Self::Held { holder, .. } => holder.strip_prefix("shards/")?.parse().ok(),
            _ => None,
        }
    }

    fn of(lease: Lease, now: Timestamp) -> Self {
        let spec = lease.spec.unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let Some(renewed) = spec.renew_time.map(|time| time.0) else {
            return Self::Released;
        };
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        let until = renewed.saturating_add(SignedDuration::from_secs(seconds.into()));
        let expired = until.is_ok_and(|until| until < now);
        match holder {
            Some(holder) if expired => Self::Expired { holder, renewed },
            Some(holder) => Self::Held {
                holder,
                since: spec.acquire_time.map(|time| time.0),
            },
            None if expired => Self::Released,
            None => Self::Handover,
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn leader(spec: &Value) -> Leader {
        let lease = serde_json::from_value(json!({"spec": spec})).expect("a Lease");
        let now = "2030-01-01T00:01:00Z".parse().expect("a time");
        Leader::of(lease, now)
    }

    #[test]
    fn replicas_with_shards_hold_the_lease_together() {
        let held = |holder: &str| Leader::Held {
            holder: holder.to_owned(),
            since: None,
        };
        assert_eq!(held("shards/9").shards(), Some(9));
        assert_eq!(held("pod-0").shards(), None);
        assert_eq!(Leader::Released.shards(), None);
    }

    #[test]
    fn a_lease_that_is_not_renewed_in_time_has_no_holder() {
        let mut spec = json!({
            "holderIdentity": "pod-0", "leaseDurationSeconds": 15,
            "renewTime": "2030-01-01T00:00:50.000000Z",
        });
        assert!(leader(&spec).is_held());
        spec["renewTime"] = json!("2030-01-01T00:00:40.000000Z");
        assert!(matches!(leader(&spec), Leader::Expired { .. }));
        spec["holderIdentity"] = json!("");
        assert_eq!(leader(&spec), Leader::Released);
        spec["renewTime"] = json!("2030-01-01T00:00:50.000000Z");
        assert_eq!(leader(&spec), Leader::Handover);
        spec["renewTime"] = Value::Null;
        assert_eq!(leader(&spec), Leader::Released);
    }
}
