//! The result of `kubectl apply` on an existing object.

use serde_json::{Map, Value};

/// Annotation in which `kubectl apply` stores the configuration that it applied last.
const LAST_APPLIED: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Returns the stored object after `kubectl apply`: the fields of the manifest are set, fields that were applied
/// last time but are no longer in the manifest are removed, and fields that others have set stay.
pub(crate) fn applied(stored: &Value, manifest: &Value) -> Value {
    let last = stored
        .pointer(LAST_APPLIED)
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    let mut object = stored.clone();
    json_patch::merge(&mut object, &removals(&last, manifest));
    json_patch::merge(&mut object, manifest);
    object
}

/// Returns a merge patch that removes the fields that exist only in `last`.
fn removals(last: &Value, manifest: &Value) -> Value {
    let mut removals = Map::new();
    for (name, value) in last.as_object().into_iter().flatten() {
        match manifest.get(name) {
            None => {
                removals.insert(name.clone(), Value::Null);
            }
            Some(now) if now.is_object() && value.is_object() => {
                removals.insert(name.clone(), crate::check::apply::removals(value, now));
            }
            Some(_) => {}
        }
    }
    Value::Object(removals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_no_longer_applied_are_removed_and_fields_of_others_stay() {
        let last =
            json!({"spec": {"port": 5432, "tags": {"team": "a", "cost": "b"}, "multiAz": true}});
        let stored = json!({
            "metadata": {
                "uid": "1",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last.to_string()},
            },
            "spec": {"port": 5432, "tags": {"team": "a", "cost": "b", "by-hand": "c"}, "multiAz": true, "engine": "mysql"},
        });
        let manifest = json!({"spec": {"tags": {"team": "z"}, "multiAz": false}});
        let object = applied(&stored, &manifest);
        assert_eq!(
            object["spec"],
            json!({"tags": {"team": "z", "by-hand": "c"}, "multiAz": false, "engine": "mysql"})
        );
        assert_eq!(object["metadata"]["uid"], "1");
    }

    #[test]
    fn an_object_without_last_applied_configuration_keeps_all_fields() {
        let stored = json!({"spec": {"port": 5432, "engine": "mysql"}});
        let object = applied(&stored, &json!({"spec": {"port": 1}}));
        assert_eq!(object, json!({"spec": {"port": 1, "engine": "mysql"}}));
    }
}
