//! Labels in a compact form.

use serde_json::Value;

/// Labels as `name=value`, sorted.
pub(crate) type Labels = Box<[Box<str>]>;

pub(crate) fn of(map: Option<&Value>) -> Labels {
    let map = map.and_then(Value::as_object).into_iter().flatten();
    let labels = map.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?).into()));
    let mut labels: Vec<Box<str>> = labels.collect();
    labels.sort_unstable();
    labels.into()
}

/// Returns true if a label with this name exists. `name` ends with `=`.
pub(crate) fn has_name(labels: &Labels, name: &str) -> bool {
    labels.iter().any(|label| label.starts_with(name))
}
