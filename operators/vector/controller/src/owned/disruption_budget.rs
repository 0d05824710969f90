//! `PodDisruptionBudget` of an aggregator.

use lockstep_vector_api::{Aggregator, EvictionPolicy};
use serde_json::{Value, json};

use crate::owned::autoscaler;
use crate::owned::fields::Fields;
use crate::owned::owned_workload::{OwnedWorkload, object};

/// Returns the budget, if it is enabled and the aggregator can have more than one Pod: with one, it would block each
/// drain of a node.
pub(crate) fn desired(workload: &OwnedWorkload<'_>, aggregator: &Aggregator) -> Option<Value> {
    let budget = aggregator.pod_disruption_budget.as_ref()?;
    if !budget.enabled.unwrap_or_default() || max_replicas(aggregator) <= 1 {
        return None;
    }
    let (limit, value) = match (&budget.min_available, &budget.max_unavailable) {
        (Some(min), _) => ("minAvailable", min.clone()),
        (None, Some(max)) => ("maxUnavailable", max.clone()),
        (None, None) => ("maxUnavailable", json!(1)),
    };
    // By default, Pods that are not ready can always be evicted: otherwise they could block a drain.
    let policy = match budget.unhealthy_pod_eviction_policy {
        Some(EvictionPolicy::IfHealthyBudget) => "IfHealthyBudget",
        Some(EvictionPolicy::AlwaysAllow) | None => "AlwaysAllow",
    };
    let spec = Fields::new()
        .with("selector", json!({"matchLabels": workload.match_labels()}))
        .with(limit, value)
        .with("unhealthyPodEvictionPolicy", policy);
    let metadata = workload.metadata(&workload.object_name());
    let budget = object("policy/v1", "PodDisruptionBudget", metadata);
    Some(budget.with("spec", spec).into())
}

fn max_replicas(aggregator: &Aggregator) -> i32 {
    let autoscaling = aggregator.autoscaling.as_ref();
    let autoscaling = autoscaling.filter(|_| autoscaler::is_enabled(aggregator));
    autoscaling.map_or(aggregator.replicas.unwrap_or(1), |it| it.max_replicas)
}
