//! Observed Deployments and `StatefulSet` of an aggregator.

use lockstep_vector_api::Aggregator;
use serde_json::{Value, json};

use crate::owned::owned_workload::OwnedWorkload;

/// Observed workloads of an aggregator, as the API server stores them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedAggregator<'a> {
    /// Deployment, if it exists.
    pub deployment: Option<&'a Value>,
    /// `StatefulSet`, if it exists.
    pub stateful_set: Option<&'a Value>,
    /// Deployment of the event collector, if it exists.
    pub event_collector: Option<&'a Value>,
    /// If true, the workload of the desired kind is rolled out and all its Pods are ready.
    pub is_successor_ready: bool,
}

impl ObservedAggregator<'_> {
    /// Returns the workload of the other kind, unchanged, while its Pods must still receive events: after a change of
    /// `persistence`, until the Pods of the desired kind are ready.
    pub(crate) fn predecessor(
        &self,
        workload: &OwnedWorkload<'_>,
        aggregator: &Aggregator,
    ) -> Option<Value> {
        let (kind, other) = if aggregator.is_persistent() {
            ("Deployment", self.deployment)
        } else {
            ("StatefulSet", self.stateful_set)
        };
        // Two Pods with one host port do not fit on a node: the new ones could wait for the old ones forever.
        let can_wait = !workload.settings.host_network.unwrap_or_default();
        // An object with nothing but its name is left as it is.
        (other.is_some() && !self.is_successor_ready && can_wait).then(|| {
            json!({
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"name": workload.object_name(), "namespace": workload.namespace},
            })
        })
    }
}
