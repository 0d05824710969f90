//! Finalizers: each controller sets and removes its own and leaves the others' alone.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, TestOperation};
use kube::api::Patch;
use serde_json::json;

/// What adds a finalizer to a list of them, if it is not in it.
pub(crate) fn add_patch(finalizers: &[String], finalizer: &str) -> Option<PatchOperation> {
    if finalizers.iter().any(|name| name == finalizer) {
        return None;
    }
    let (place, value) = if finalizers.is_empty() {
        (["metadata", "finalizers"].as_slice(), json!([finalizer]))
    } else {
        (["metadata", "finalizers", "-"].as_slice(), json!(finalizer))
    };
    let path = PointerBuf::from_tokens(place.iter().copied());
    Some(PatchOperation::Add(AddOperation { path, value }))
}

/// What has operations refused, as a conflict, that were decided on an object in another state than this.
pub(crate) fn resource_version_precondition(version: Option<&str>) -> PatchOperation {
    PatchOperation::Add(AddOperation {
        path: PointerBuf::from_tokens(["metadata", "resourceVersion"]),
        value: json!(version),
    })
}

/// What removes a finalizer from a list of them, if it is in it.
pub(crate) fn remove_patch(finalizers: &[String], finalizer: &str) -> Option<Patch<()>> {
    let at = finalizers.iter().position(|name| name == finalizer)?;
    let path = PointerBuf::from_tokens(["metadata", "finalizers", &at.to_string()]);
    // The test makes sure that it is ours.
    let test = PatchOperation::Test(TestOperation {
        path: path.clone(),
        value: finalizer.into(),
    });
    let remove = PatchOperation::Remove(RemoveOperation { path });
    Some(Patch::Json(json_patch::Patch(vec![test, remove])))
}
