//! Resource requests and limits.

use serde_json::{Map, Value, json};

/// Returns the resource requirements of a container. Requests and limits have defaults of their own, so that a user who
/// sets one keeps the default of the other; an empty map removes the default.
pub(crate) fn with_defaults(resources: Option<&Map<String, Value>>) -> Value {
    let mut resources = resources.cloned().unwrap_or_default();
    for (name, default) in [
        ("requests", json!({"cpu": "100m", "memory": "200Mi"})),
        ("limits", json!({"cpu": "1", "memory": "1Gi"})),
    ] {
        if resources.get(name).is_none_or(Value::is_null) {
            resources.insert(name.to_owned(), default);
        }
    }
    Value::Object(resources)
}
