//! Defaults of objects, which contain those of their fields.

use serde_json::Value;

use crate::conversion::insert_at;
use crate::conversion::schema::path::steps;

/// Moves a field in the defaults of the objects around both of its places, and removes it from those of the other objects
/// around the earlier one.
pub(super) fn relocate(schema: &mut Value, from: &str, to: &str, shared: usize) {
    let to: Vec<_> = steps(to).collect();
    for_each_removed(schema, from, |depth, default, value| {
        if depth <= shared {
            insert_at(default, &to[depth..].join("."), value);
        }
    });
}

/// Removes a field from the defaults of the objects around it.
pub(super) fn remove(schema: &mut Value, path: &str) {
    for_each_removed(schema, path, |_, _, _| {});
}

/// Removes a field from the defaults of the objects around it, from the outside, and calls a function with the depth of the object,
/// its default and the removed value.
fn for_each_removed(
    schema: &mut Value,
    path: &str,
    mut removed: impl FnMut(usize, &mut Value, Value),
) {
    let path: Vec<_> = steps(path).collect();
    let Some((field, parents)) = path.split_last() else {
        return;
    };
    let mut node = schema;
    for depth in 0..=parents.len() {
        if let Some(default) = node.get_mut("default") {
            let mut below = parents[depth..].iter();
            let parent = below.try_fold(&mut *default, |value, step| value.get_mut(*step));
            let fields = parent.and_then(Value::as_object_mut);
            if let Some(value) = fields.and_then(|fields| fields.remove(*field)) {
                removed(depth, default, value);
            }
        }
        let Some(next) = parents
            .get(depth)
            .and_then(|step| node.get_mut("properties")?.get_mut(*step))
        else {
            return;
        };
        node = next;
    }
}
