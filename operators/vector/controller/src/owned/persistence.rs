//! Persistent storage of an aggregator.

use lockstep_vector_api::Persistence;
use serde_json::{Map, Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::fields::Fields;
use crate::owned::volumes;

/// Returns the templates of the `PersistentVolumeClaims`.
pub(crate) fn claims(persistence: &Persistence) -> Result<Vec<Value>, OwnedObjectsError> {
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

/// Returns what happens to `PersistentVolumeClaims` without a Pod. By default they are kept: they contain events.
pub(crate) fn retention_policy(persistence: &Persistence) -> Value {
    let mut policy = persistence.retention_policy.clone().unwrap_or_default();
    for case in ["whenDeleted", "whenScaled"] {
        policy.entry(case).or_insert_with(|| json!("Retain"));
    }
    Value::Object(policy)
}
