//! Diff between an object as written and as the cluster would store it.

use serde_json::Value;
use similar::TextDiff;

/// Metadata fields that the API server sets.
const KEPT_BY_THE_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns the difference between an object as written and as it would be stored, both as YAML with their fields
/// in order. Metadata that only the API server sets is left out.
pub(crate) fn difference(written: &Value, stored: &Value, crd: &Value) -> String {
    let mut stored = stored.clone();
    if let Some(metadata) = stored["metadata"].as_object_mut() {
        for field in KEPT_BY_THE_SERVER {
            if written["metadata"].get(field).is_none() {
                metadata.remove(field);
            }
        }
    }
    // The status is not stored together with the rest of the object.
    if has_status_subresource(crd, &written["apiVersion"])
        && let Some(fields) = stored.as_object_mut()
    {
        fields.remove("status");
    }
    let (written, stored) = (yaml(written), yaml(&stored));
    if written == stored {
        return "stored as written\n".to_owned();
    }
    TextDiff::from_lines(&written, &stored)
        .unified_diff()
        .context_radius(2)
        .header("as written", "as stored")
        .to_string()
}

pub(crate) fn has_status_subresource(crd: &Value, api_version: &Value) -> bool {
    let api_version = api_version.as_str().unwrap_or_default();
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let mut served = versions.filter(|one| one["name"] == version);
    served.any(|one| !one["subresources"]["status"].is_null())
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|error| format!("# {error}\n"))
}
