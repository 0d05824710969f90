//! Defaults of objects, which contain those of their fields.

use serde_json::Value;

use crate::conversion::schema::steps;

/// Removes a field from the defaults of the objects around it. Returns its value in the outermost default that has it, which
/// is the one that applies.
pub(super) fn take(schema: &mut Value, path: &str) -> Option<Value> {
    let path: Vec<_> = steps(path).collect();
    let (field, parents) = path.split_last()?;
    let mut taken = None;
    let mut node = schema;
    for depth in 0..=parents.len() {
        if let Some(default) = node.get_mut("default") {
            let mut below = parents[depth..].iter();
            let parent = below.try_fold(default, |value, step| value.get_mut(*step));
            let removed = parent.and_then(Value::as_object_mut);
            let removed = removed.and_then(|fields| fields.remove(*field));
            taken = taken.or(removed);
        }
        let Some(step) = parents.get(depth) else {
            break;
        };
        node = node.get_mut("properties")?.get_mut(*step)?;
    }
    taken
}
