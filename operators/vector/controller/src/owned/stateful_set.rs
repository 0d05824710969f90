//! `StatefulSet` of an aggregator with persistent storage.

use lockstep_vector_api::{Aggregator, Persistence};
use serde_json::{Map, Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::fields::Fields;
use crate::owned::observed::ObservedAggregator;
use crate::owned::owned_workload::{OwnedWorkload, object};
use crate::owned::{persistence, pod, quantity, replicas};

/// Fields of a `StatefulSet` that can be changed only by creating it again.
const IMMUTABLE: [&str; 3] = ["podManagementPolicy", "serviceName", "volumeClaimTemplates"];

/// Returns the `StatefulSet`, and a notice if the existing one keeps values that cannot be changed.
pub(crate) fn desired(
    workload: &OwnedWorkload<'_>,
    aggregator: &Aggregator,
    observed: &ObservedAggregator<'_>,
) -> Result<(Value, Option<String>), OwnedObjectsError> {
    let default = Persistence::default();
    let settings = aggregator.persistence.as_ref().unwrap_or(&default);
    let mut spec: Map<String, Value> = [
        ("serviceName", json!(workload.headless_service_name())),
        // Every Pod has a volume of its own, so that none has to wait for another one.
        ("podManagementPolicy", json!("Parallel")),
        (
            "volumeClaimTemplates",
            json!(persistence::claims(settings)?),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect();
    let kept = keep_immutable(&mut spec, observed.stateful_set);
    let spec = Fields::from(spec)
        .with_some(
            "replicas",
            replicas::desired(aggregator, observed.stateful_set),
        )
        .with(
            "persistentVolumeClaimRetentionPolicy",
            persistence::retention_policy(settings),
        )
        .with("selector", json!({"matchLabels": workload.match_labels()}))
        .with_some("updateStrategy", workload.settings.update_strategy.clone())
        .with("template", pod::template(workload, Some(aggregator), true));
    let name = workload.object_name();
    let stateful_set =
        object("apps/v1", "StatefulSet", workload.workload_metadata()).with("spec", spec);
    let notice = (!kept.is_empty()).then(|| {
        let fields = kept.join(", ");
        format!(
            "the StatefulSet {name} keeps its {fields}, because Kubernetes does not change them; to apply the new values, delete it with --cascade=orphan"
        )
    });
    Ok((stateful_set.into(), notice))
}

/// Replaces the values of immutable fields that differ from the observed ones. Returns the names of these fields.
fn keep_immutable(spec: &mut Map<String, Value>, observed: Option<&Value>) -> Vec<&'static str> {
    let Some(observed) = observed else {
        return Vec::new();
    };
    let mut kept = Vec::new();
    for name in IMMUTABLE {
        let live = &observed["spec"][name];
        if !live.is_null() && !has_fields_of(live, &spec[name]) {
            spec.insert(name.to_owned(), live.clone());
            kept.push(name);
        }
    }
    kept
}

/// Returns true if an observed value has all that a desired one has. The API server adds defaults to it.
fn has_fields_of(observed: &Value, desired: &Value) -> bool {
    match (observed, desired) {
        (Value::Object(observed), Value::Object(desired)) => desired.iter().all(|(name, value)| {
            let live = observed.get(name);
            live.is_some_and(|live| has_fields_of(live, value))
        }),
        (Value::Array(observed), Value::Array(desired)) => {
            let mut pairs = observed.iter().zip(desired);
            observed.len() == desired.len() && pairs.all(|(o, d)| has_fields_of(o, d))
        }
        _ => observed == desired || quantity::are_equal(observed, desired),
    }
}
