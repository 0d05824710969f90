//! Status of an object whose CRD has the status subresource: a write of the object does not change it.

use serde_json::Value;

/// Returns an object as the API server validates it: with the stored status, or without a status if it is created.
pub(crate) fn with_stored_status(object: &Value, old: Option<&Value>) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        match old.and_then(|old| old.get("status")) {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_of_an_object_keeps_the_stored_status() {
        let written = json!({"spec": {"a": 1}, "status": {"b": 2}});
        let created = json!({"spec": {"a": 1}});
        assert_eq!(with_stored_status(&written, None), created);
        assert_eq!(with_stored_status(&written, Some(&json!({}))), created);
        let stored = json!({"spec": {"a": 0}, "status": {"b": 3}});
        for object in [&written, &created] {
            let updated = with_stored_status(object, Some(&stored));
            assert_eq!(updated, json!({"spec": {"a": 1}, "status": {"b": 3}}));
        }
    }
}
