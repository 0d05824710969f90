//! All texts of a value.

use lockstep_shared_validation::LazyPath;
use serde_json::Value;

use crate::option_path::lazily_below;

/// Position of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPosition {
    /// Name of a field. Its path is that of its value.
    Name,
    /// Value.
    Value,
}

/// Passes each text of a value to a function, including the names of fields, with its path.
///
/// # Examples
///
/// ```
/// use lockstep_shared_validation::FieldPath;
/// use lockstep_vector_config::{TextPosition, for_each_text};
/// use serde_json::json;
///
/// let sink = json!({"labels": {"app": "shop"}});
/// let mut values = Vec::new();
/// for_each_text(&sink, &FieldPath::new("sinks[out]").lazy(), &mut |text, position, path| {
///     if position == TextPosition::Value {
///         values.push(format!("{}: {text}", path.to_path()));
///     }
/// });
/// assert_eq!(values, ["sinks[out].labels.app: shop"]);
/// ```
pub fn for_each_text(
    value: &Value,
    path: &LazyPath<'_>,
    check: &mut impl FnMut(&str, TextPosition, &LazyPath<'_>),
) {
    match value {
        Value::String(text) => check(text, TextPosition::Value, path),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for_each_text(item, &path.index(index), check);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = lazily_below(path, name);
                check(name, TextPosition::Name, &path);
                for_each_text(value, &path, check);
            }
        }
        _ => {}
    }
}
