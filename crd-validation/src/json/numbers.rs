//! Numbers as the API server stores them.

use serde_json::Value;

use crate::format::go_fmt;

/// Returns true if the value contains a number written as a float.
#[must_use]
pub fn has_floats(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_floats),
        Value::Object(fields) => fields.values().any(has_floats),
        _ => false,
    }
}

/// Returns the object as the API server has it after a webhook filled defaults: it serializes and parses the
/// object again, which turns `100.0` into `100`.
#[must_use]
pub fn reread(object: &Value) -> Value {
    match object {
        Value::Number(number) => match go_fmt::json_number(number).parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) => object.clone(),
        },
        Value::Array(items) => items.iter().map(reread).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), reread(value)))
            .collect(),
        _ => object.clone(),
    }
}
