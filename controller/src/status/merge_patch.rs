//! Smallest merge patch between two values (RFC 7386).

use serde_json::{Map, Value};

/// Returns the patch that turns `before` into `after`, or none if they are equal.
pub(crate) fn between(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for (name, value) in after {
        match before.get(name) {
            Some(old) => {
                if let Some(change) = between(old, value) {
                    patch.insert(name.clone(), change);
                }
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_patch_contains_only_what_differs() {
        let before = json!({"a": 1, "b": {"x": 1, "y": 2}, "c": [1], "d": true});
        let after = json!({"a": 1, "b": {"x": 1, "y": 3}, "c": [1, 2], "e": null});
        let patch = between(&before, &after).expect("they differ");
        assert_eq!(
            patch,
            json!({"b": {"y": 3}, "c": [1, 2], "d": null, "e": null})
        );
        assert_eq!(between(&after, &after), None);
    }
}
