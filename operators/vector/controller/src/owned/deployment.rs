//! Deployment of an aggregator without persistent storage.

use lockstep_vector_api::Aggregator;
use serde_json::{Value, json};

use crate::owned::fields::Fields;
use crate::owned::observed::ObservedAggregator;
use crate::owned::runner::{Runner, object};
use crate::owned::{pod, replicas};

/// Returns the Deployment of an aggregator without persistent storage.
pub(crate) fn of(
    runner: &Runner<'_>,
    aggregator: &Aggregator,
    observed: &ObservedAggregator<'_>,
) -> Value {
    let spec = Fields::new()
        .with_some("replicas", replicas::of(aggregator, observed.deployment))
        .with("selector", json!({"matchLabels": runner.match_labels()}))
        .with("template", pod::template(runner, Some(aggregator), false));
    object("apps/v1", "Deployment", runner.workload_metadata())
        .with("spec", spec)
        .into()
}
