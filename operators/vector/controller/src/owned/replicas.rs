//! Number of Pods of an aggregator.

use lockstep_vector_api::Aggregator;
use serde_json::Value;

use crate::owned::autoscaler;

/// Returns the number of Pods, or none if a `HorizontalPodAutoscaler` or the Kubernetes API decides it. `observed` is the
/// existing Deployment or `StatefulSet`.
///
/// While an autoscaler has not yet written the number, it stays as it is: server-side apply removes a field that its
/// only manager leaves out, so that the aggregator would be scaled down to one Pod first.
pub(crate) fn desired(aggregator: &Aggregator, observed: Option<&Value>) -> Option<i64> {
    if autoscaler::is_enabled(aggregator) {
        let observed = observed.filter(|workload| !is_scaled_by_another(workload));
        return observed.and_then(|workload| workload["spec"]["replicas"].as_i64());
    }
    aggregator.replicas.map(i64::from)
}

/// Returns true if the number of Pods was written by the subresource `scale`.
fn is_scaled_by_another(workload: &Value) -> bool {
    let entries = workload["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        entry["subresource"] == "scale" && entry["fieldsV1"]["f:spec"].get("f:replicas").is_some()
    })
}
