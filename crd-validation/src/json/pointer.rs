//! Access to JSON objects by dotted field path (`spec.storage.sizeGib`).

use serde_json::{Map, Value};

/// Returns the value at a dotted path; null counts as absent.
#[must_use]
pub fn get<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let found = name
        .split('.')
        .try_fold(object, |value, field| value.get(field))?;
    (!found.is_null()).then_some(found)
}

/// Sets the value at a dotted path. Parents that are missing, or are no objects, become objects.
pub fn set(object: &mut Value, name: &str, value: Value) {
    let mut target = object;
    for field in name.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = &mut target[field];
    }
    *target = value;
}

/// Removes the value at a dotted path.
pub fn remove(object: &mut Value, name: &str) {
    let (parent, field) = match name.rsplit_once('.') {
        Some((parent, field)) => {
            let target = parent
                .split('.')
                .try_fold(object, |value, field| value.get_mut(field));
            (target, field)
        }
        None => (Some(object), name),
    };
    if let Some(fields) = parent.and_then(Value::as_object_mut) {
        fields.remove(field);
    }
}
