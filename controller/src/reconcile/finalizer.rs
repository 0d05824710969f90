//! Finalizers: each controller adds and removes its own and leaves all others unchanged.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, TestOperation};
use kube::api::Patch;
use serde_json::json;

/// Returns the operation that adds a finalizer to a list, if it is missing.
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

/// Returns the operation that makes a patch fail with a conflict if the object has changed since this resource
/// version.
pub(crate) fn resource_version_precondition(version: Option<&str>) -> PatchOperation {
    PatchOperation::Add(AddOperation {
        path: PointerBuf::from_tokens(["metadata", "resourceVersion"]),
        value: json!(version),
    })
}

/// Returns the patch that removes a finalizer from a list, if it is present.
pub(crate) fn remove_patch(finalizers: &[String], finalizer: &str) -> Option<Patch<()>> {
    let at = finalizers.iter().position(|name| name == finalizer)?;
    let path = PointerBuf::from_tokens(["metadata", "finalizers", &at.to_string()]);
    // The test ensures that the entry is our finalizer.
    let test = PatchOperation::Test(TestOperation {
        path: path.clone(),
        value: finalizer.into(),
    });
    let remove = PatchOperation::Remove(RemoveOperation { path });
    Some(Patch::Json(json_patch::Patch(vec![test, remove])))
}
