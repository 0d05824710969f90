//! JSON types of values and of schema nodes.

use serde_json::{Number, Value};

/// JSON type that a schema node can require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

impl JsonType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "array" => Self::Array,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "object" => Self::Object,
            "string" => Self::String,
            _ => return None,
        })
    }
}

/// Returns the number as an integer, if it is one. Like the API server, this accepts `1.0`.
#[must_use]
pub fn as_integer(number: &Number) -> Option<i128> {
    if let Some(n) = number.as_i64() {
        return Some(n.into());
    }
    if let Some(n) = number.as_u64() {
        return Some(n.into());
    }
    let float = number.as_f64()?;
    // Integers beyond 2^53 cannot be distinguished as floats; the API server rejects them.
    #[expect(clippy::cast_possible_truncation, reason = "bounded by 2^53")]
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_991.0).then_some(float as i128)
}

/// Returns the name of the JSON type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_i64().is_none() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_floats_are_integers() {
        let number = |f: f64| Number::from_f64(f).expect("finite");
        assert_eq!(as_integer(&number(10.0)), Some(10));
        assert_eq!(as_integer(&number(10.5)), None);
    }
}
