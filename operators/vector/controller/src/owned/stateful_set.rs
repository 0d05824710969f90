//! `StatefulSet` of an aggregator with persistent storage.

use lockstep_vector_api::{Aggregator, Persistence};
use serde_json::{Map, Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::fields::Fields;
use crate::owned::observed::ObservedAggregator;
use crate::owned::runner::{Runner, object};
use crate::owned::{pod, quantity, replicas, volumes};

/// Fields of a `StatefulSet` that can be changed only by creating it again.
const IMMUTABLE: [&str; 3] = ["podManagementPolicy", "serviceName", "volumeClaimTemplates"];

/// Returns true if each Pod has a PersistentVolumeClaim.
pub(crate) fn is_persistent(aggregator: &Aggregator) -> bool {
    aggregator.persistence.as_ref().is_some_and(|persistence| {
        persistence.enabled.unwrap_or_default() || !persistence.volume_claim_templates.is_empty()
    })
}

/// Returns the name of the headless Service, which gives each Pod a DNS name.
pub(crate) fn headless_service_name(runner: &Runner<'_>) -> String {
    format!("{}-headless", runner.object_name())
}

/// Returns the `StatefulSet`, and a notice if the existing one keeps values that cannot be changed.
pub(crate) fn of(
    runner: &Runner<'_>,
    aggregator: &Aggregator,
    observed: &ObservedAggregator<'_>,
) -> Result<(Value, Option<String>), OwnedObjectsError> {
    let default = Persistence::default();
    let persistence = aggregator.persistence.as_ref().unwrap_or(&default);
    let retention = persistence.retention_policy.clone().unwrap_or_default();
    let mut spec: Map<String, Value> = [
        ("serviceName", json!(headless_service_name(runner))),
        // Every Pod has a volume of its own, so that none has to wait for another one.
        ("podManagementPolicy", json!("Parallel")),
        ("volumeClaimTemplates", json!(claims(persistence)?)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect();
    let kept = keep_immutable(&mut spec, observed.stateful_set);
    let spec = Fields::from(spec)
        .with_some("replicas", replicas::of(aggregator, observed.stateful_set))
        .with(
            "persistentVolumeClaimRetentionPolicy",
            retention_policy(retention),
        )
        .with("selector", json!({"matchLabels": runner.match_labels()}))
        .with("template", pod::template(runner, Some(aggregator), true));
    let name = runner.object_name();
    let stateful_set = object("apps/v1", "StatefulSet", runner.metadata(&name)).with("spec", spec);
    let notice = (!kept.is_empty()).then(|| {
        let fields = kept.join(", ");
        format!(
            "the StatefulSet {name} keeps its {fields}, because Kubernetes does not change them; to apply the new values, delete it with --cascade=orphan"
        )
    });
    Ok((stateful_set.into(), notice))
}

/// Returns the templates of the PersistentVolumeClaims.
fn claims(persistence: &Persistence) -> Result<Vec<Value>, OwnedObjectsError> {
    let templates = &persistence.volume_claim_templates;
    if !templates.is_empty() {
        let is_data = |claim: &Map<String, Value>| {
            let metadata = claim.get("metadata");
            metadata.is_some_and(|metadata| metadata["name"] == volumes::DATA)
        };
        if !templates.iter().any(is_data) {
            return Err(OwnedObjectsError::NoDataClaim);
        }
        return Ok(templates.iter().cloned().map(Value::Object).collect());
    }
    let modes = match &persistence.access_modes[..] {
        [] => vec!["ReadWriteOnce".to_owned()],
        modes => modes.to_vec(),
    };
    let size = persistence.size.clone().unwrap_or_else(|| json!("10Gi"));
    let spec = Fields::new()
        .with("accessModes", modes)
        .with("resources", json!({"requests": {"storage": size}}))
        .with_some("storageClassName", persistence.storage_class_name.clone());
    let claim = Fields::new()
        .with("metadata", json!({"name": volumes::DATA}))
        .with("spec", spec);
    Ok(vec![claim.into()])
}

/// Returns the policy for PersistentVolumeClaims. By default they are kept: they contain events.
fn retention_policy(mut policy: Map<String, Value>) -> Value {
    for case in ["whenDeleted", "whenScaled"] {
        policy.entry(case).or_insert_with(|| json!("Retain"));
    }
    Value::Object(policy)
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
            let pairs = observed.iter().zip(desired);
            observed.len() == desired.len() && pairs.into_iter().all(|(o, d)| has_fields_of(o, d))
        }
        _ => observed == desired || quantity::are_equal(observed, desired),
    }
}
