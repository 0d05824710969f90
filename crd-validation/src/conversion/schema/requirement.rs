//! Required fields of objects of a schema.

use serde_json::{Value, json};

use crate::conversion::schema::path::steps;

/// Returns true if a field, and each object around it from this depth on, is required in the object around it and cannot be
/// null.
pub(super) fn is_required_below(schema: &Value, path: &str, depth: usize) -> bool {
    let mut node = schema;
    for (at, step) in steps(path).enumerate() {
        let required = node["required"].as_array();
        let is_required = required.is_some_and(|required| required.iter().any(|name| name == step));
        node = &node["properties"][step];
        if at >= depth && (!is_required || node["nullable"] == true) {
            return false;
        }
    }
    true
}

pub(super) fn require(node: &mut Value, field: &str) {
    if !node["required"].is_array() {
        node["required"] = json!([]);
    }
    if let Some(required) = node["required"].as_array_mut()
        && !required.iter().any(|name| name == field)
    {
        required.push(field.into());
    }
}

/// Makes a field optional.
pub(super) fn remove(node: &mut Value, field: &str) {
    let Some(required) = node.get_mut("required").and_then(Value::as_array_mut) else {
        return;
    };
    required.retain(|name| name != field);
    if required.is_empty()
        && let Some(node) = node.as_object_mut()
    {
        node.remove("required");
    }
}
