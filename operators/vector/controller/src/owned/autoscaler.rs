//! `HorizontalPodAutoscaler` of an aggregator.

use lockstep_vector_api::Aggregator;
use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::owned_workload::{OwnedWorkload, object};

/// Returns true if an autoscaler decides the number of Pods.
pub(crate) fn is_enabled(aggregator: &Aggregator) -> bool {
    let autoscaling = aggregator.autoscaling.as_ref();
    autoscaling.is_some_and(|it| it.enabled.unwrap_or_default())
}

/// Returns the autoscaler, if it is enabled.
pub(crate) fn desired(workload: &OwnedWorkload<'_>, aggregator: &Aggregator) -> Option<Value> {
    let autoscaling = aggregator.autoscaling.as_ref()?;
    if !is_enabled(aggregator) {
        return None;
    }
    let kind = if aggregator.is_persistent() {
        "StatefulSet"
    } else {
        "Deployment"
    };
    let name = workload.object_name();
    let target = json!({"apiVersion": "apps/v1", "kind": kind, "name": name});
    let spec = Fields::new()
        .with("scaleTargetRef", target)
        .with_some("minReplicas", autoscaling.min_replicas)
        .with("maxReplicas", autoscaling.max_replicas)
        .with_list("metrics", autoscaling.metrics.clone())
        .with_some("behavior", autoscaling.behavior.clone());
    let metadata = workload.metadata(&name);
    let autoscaler = object("autoscaling/v2", "HorizontalPodAutoscaler", metadata);
    Some(autoscaler.with("spec", spec).into())
}
