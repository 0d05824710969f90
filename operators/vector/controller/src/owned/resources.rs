//! Resource requests and limits.

use serde_json::{Map, Value, json};

use crate::owned::quantity;

/// Returns the resource requirements of a container. Requests and limits have defaults of their own, so that a user who
/// sets one keeps the default of the other; an empty map removes the default.
pub(crate) fn with_defaults(resources: Option<&Map<String, Value>>) -> Value {
    let mut resources = resources.cloned().unwrap_or_default();
    let is_missing = |name: &str| resources.get(name).is_none_or(Value::is_null);
    let missing = ["requests", "limits"].map(is_missing);
    let mut requests = json!({"cpu": "100m", "memory": "200Mi"});
    let mut limits = json!({"cpu": "1", "memory": "1Gi"});
    // The API server rejects a request that is more than its limit.
    match missing {
        [true, false] => adapt(&mut requests, &resources["limits"], |default, limit| {
            quantity::is_less(limit, default)
        }),
        [false, true] => adapt(&mut limits, &resources["requests"], |default, request| {
            quantity::is_less(default, request)
        }),
        _ => {}
    }
    for (name, is_missing, default) in [
        ("requests", missing[0], requests),
        ("limits", missing[1], limits),
    ] {
        if is_missing {
            resources.insert(name.to_owned(), default);
        }
    }
    Value::Object(resources)
}

/// Returns the memory limit of the Vector container of an object that runs Vector, in bytes.
pub(crate) fn memory_limit(object: &Value) -> Option<u64> {
    let containers = object["spec"]["template"]["spec"]["containers"].as_array()?;
    let vector = containers
        .iter()
        .find(|container| container["name"] == object["metadata"]["name"])?;
    quantity::bytes(&vector["resources"]["limits"]["memory"])
}

/// Replaces each default that does not agree with the quantity of the user by that quantity.
fn adapt(defaults: &mut Value, given: &Value, disagrees: impl Fn(&Value, &Value) -> bool) {
    for (name, default) in defaults.as_object_mut().into_iter().flatten() {
        if disagrees(default, &given[name]) {
            *default = given[name].clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_agrees_with_what_the_user_sets() {
        let requests = json!({"cpu": "100m", "memory": "200Mi"});
        let limits = json!({"cpu": "1", "memory": "1Gi"});
        for (given, expected) in [
            (json!({}), json!({"requests": requests, "limits": limits})),
            (
                json!({"requests": {"cpu": "2"}}),
                json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "1Gi"}}),
            ),
            (
                json!({"requests": {"cpu": "500m"}, "limits": null}),
                json!({"requests": {"cpu": "500m"}, "limits": limits}),
            ),
            (
                json!({"limits": {"memory": "128Mi"}}),
                json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}),
            ),
            (
                json!({"requests": {}, "limits": {}}),
                json!({"requests": {}, "limits": {}}),
            ),
        ] {
            assert_eq!(with_defaults(given.as_object()), expected, "{given}");
        }
    }
}
