//! Deployment of an aggregator without persistent storage.

use lockstep_vector_api::Aggregator;
use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::observed::ObservedAggregator;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::{pod, replicas};

/// Returns the Deployment of an aggregator without persistent storage.
pub(crate) fn desired(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    observed: &ObservedAggregator<'_>,
) -> Value {
    let spec = Fields::new()
        .with_some(
            "replicas",
            replicas::desired(aggregator, observed.deployment),
        )
        .with("selector", json!({"matchLabels": workload.match_labels()}))
        .with_some("strategy", workload.settings.update_strategy.clone())
        .with("template", pod::template(workload, Some(aggregator), false));
    object("apps/v1", "Deployment", workload.workload_metadata())
        .with("spec", spec)
        .into()
}
