//! Desired state of an object: its children and its status.

use kube::ResourceExt;
use lockstep_sdk::controller::{ReconcileError, SyncRequest, SyncResponse};
use serde_json::json;

use super::resource::{Greeting, GreetingStatus};

pub(super) fn sync(request: &SyncRequest<'_, Greeting>) -> Result<SyncResponse, ReconcileError> {
    let object = request.parent();
    let name = format!("{}-greetings", object.name_any());
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"text": object.spec.text, "language": object.spec.language},
    });
    SyncResponse::new()
        .status(&GreetingStatus { config_map: name })?
        .child(&config_map)
}
