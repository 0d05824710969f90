//! Values of secrets (`config/loading/secret.rs`).

use regex::Regex;
use serde_json::Value;

use crate::secrets::REFERENCE;

/// Replaces the references in all texts by values.
pub(crate) fn substitute(
    value: &mut Value,
    secret: &impl Fn(&str, &str) -> Option<String>,
) -> Result<(), String> {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| substitute(item, secret)),
        Value::Object(fields) => fields
            .values_mut()
            .try_for_each(|field| substitute(field, secret)),
        Value::String(text) if text.contains("SECRET[") => {
            *text = resolved(text, secret)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn resolved(text: &str, secret: &impl Fn(&str, &str) -> Option<String>) -> Result<String, String> {
    let pattern = Regex::new(REFERENCE).map_err(|error| error.to_string())?;
    let mut result = String::new();
    let mut end = 0;
    for found in pattern.captures_iter(text) {
        let whole = found.get(0).ok_or("no match")?;
        let value = secret(&found[1], &found[2]).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{} cannot be resolved", whole.as_str()))?;
        result += &text[end..whole.start()];
        result += &value;
        end = whole.end();
    }
    Ok(result + &text[end..])
}
