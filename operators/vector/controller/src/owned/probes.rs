//! Probes of the Vector container.

use serde_json::{Map, Value, json};

use crate::owned::owned_workload::OwnedWorkload;
use crate::owned::ports;

/// Returns a probe: that of the user, or one of Vector's API if the user has asked for it.
pub(crate) fn desired(
    workload: &OwnedWorkload<'_>,
    of_user: Option<&Map<String, Value>>,
) -> Option<Value> {
    if let Some(probe) = of_user {
        return Some(Value::Object(probe.clone()));
    }
    let api = workload.settings.api.as_ref();
    let is_wanted = api.and_then(|api| api.healthcheck).unwrap_or_default();
    (workload.has_api() && is_wanted).then(|| {
        json!({
            "httpGet": {"path": "/health", "port": ports::API},
            "initialDelaySeconds": 15,
            "periodSeconds": 20,
            "timeoutSeconds": 3,
        })
    })
}
