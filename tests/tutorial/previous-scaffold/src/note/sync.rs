//! Desired state of an object: its children and its status.

use kube::ResourceExt;
use lockstep_sdk::controller::{ReconcileError, SyncRequest, SyncResponse};
use serde_json::json;

use super::resource::{Note, NoteStatus};

pub(super) fn sync(request: &SyncRequest<'_, Note>) -> Result<SyncResponse, ReconcileError> {
    let object = request.parent();
    let name = format!("{}-notes", object.name_any());
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": object.spec.text, "language": object.spec.language},
    });
    SyncResponse::new()
        .status(&NoteStatus { config_map: name })?
        .child(&config_map)
}
