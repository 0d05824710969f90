//! Finalizers: each controller sets and removes its own and leaves the others' alone.

use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, TestOperation};
use kube::api::Patch;

/// What removes a finalizer from a list of them, if it is in it.
pub(crate) fn removal(finalizers: &[String], finalizer: &str) -> Option<Patch<()>> {
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
