//! Defaults that depend on other fields, so that a CRD cannot declare them.

use crd_validation::json::pointer;
use json_patch::jsonptr::{Assign, PointerBuf};
use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

/// Default that depends on other fields and so cannot be declared in the CRD.
///
/// ```
/// use lockstep_shared_validation::DynamicDefault;
/// use serde_json::json;
///
/// /// The port of a database depends on its engine.
/// const PORT: DynamicDefault = DynamicDefault {
///     field: "spec.port",
///     value: |object| match object["spec"]["engine"].as_str()? {
///         "postgres" => Some(5432.into()),
///         "mysql" => Some(3306.into()),
///         _ => None,
///     },
/// };
/// assert_eq!((PORT.value)(&json!({"spec": {"engine": "mysql"}})), Some(json!(3306)));
/// ```
pub struct DynamicDefault {
    /// Dotted path of the field. It is filled only if its parent exists.
    pub field: &'static str,
    /// Computes the value from an object whose static defaults are filled.
    pub value: fn(&Value) -> Option<Value>,
}

/// Returns true if any field with a dynamic default is missing.
pub(crate) fn lacks_dynamic(object: &Value, defaults: &[DynamicDefault]) -> bool {
    let mut fields = defaults.iter().map(|default| default.field);
    fields.any(|field| pointer::get(object, field).is_none())
}

/// Fills the defaults that depend on other fields. Call this after the static defaults are filled.
///
/// A field that an update omits keeps its previous value, because a default must not change a running system.
/// Returns true if any field was filled.
pub(crate) fn fill_dynamic(
    object: &mut Value,
    before: Option<&Value>,
    defaults: &[DynamicDefault],
    additions: &mut Vec<PatchOperation>,
) -> bool {
    let mut fills = false;
    for default in defaults {
        let parent = default
            .field
            .rsplit_once('.')
            .map_or("", |(parent, _)| parent);
        let has_parent = pointer::get(object, parent).is_some_and(Value::is_object);
        if !has_parent || pointer::get(object, default.field).is_some() {
            continue;
        }
        let existing = before
            .and_then(|before| pointer::get(before, default.field))
            .cloned();
        if let Some(value) = existing.or_else(|| (default.value)(object)) {
            let at = PointerBuf::from_tokens(default.field.split('.'));
            record(object, &at, value, additions);
            fills = true;
        }
    }
    fills
}

/// Sets a value in the object and records it, either as a new operation or within an earlier operation that
/// added an ancestor.
fn record(object: &mut Value, at: &PointerBuf, value: Value, additions: &mut Vec<PatchOperation>) {
    let within = additions.iter_mut().find_map(|operation| match operation {
        PatchOperation::Add(add) => at
            .strip_prefix(&add.path)
            .map(|rest| (rest, &mut add.value)),
        _ => None,
    });
    match within {
        // This cannot fail: the caller has checked that the parent is an object.
        Some((rest, added)) => drop(added.assign(rest, value.clone())),
        None => {
            let path = at.clone();
            let value = value.clone();
            additions.push(PatchOperation::Add(AddOperation { path, value }));
        }
    }
    drop(object.assign(at, value));
}
