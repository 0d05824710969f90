//! Filters of a list.

use serde_json::Value;

use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Returns the entries of a list that match every filter of a request. A filter matches if one of its values does.
/// `matches` returns `None` for an unknown filter.
pub(crate) fn filter<'a, T>(
    entries: impl Iterator<Item = &'a T>,
    parameters: &Fields,
    matches: impl Fn(&T, &str, &str) -> Option<bool>,
) -> Result<Vec<&'a T>, Fault> {
    let mut kept: Vec<_> = entries.collect();
    let filters = parameters.get("Filters").and_then(Value::as_array);
    for filter in filters.into_iter().flatten() {
        let name = filter["Name"].as_str().unwrap_or_default();
        let values = filter["Values"].as_array().into_iter().flatten();
        let values: Vec<_> = values.filter_map(Value::as_str).collect();
        if values.is_empty() {
            return Err(Fault::value(format!("The filter {name} has no values")));
        }
        let mut is_known = true;
        kept.retain(|entry| {
            values.iter().any(|value| {
                let is_match = matches(entry, name, value);
                is_known &= is_match.is_some();
                is_match == Some(true)
            })
        });
        if !is_known {
            return Err(Fault::value(format!("Unrecognized filter name: {name}")));
        }
    }
    Ok(kept)
}
