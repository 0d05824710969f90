//! What `kubectl` takes a scalar for. It reads YAML 1.1, and hands on numbers as JSON.

use serde_json::{Number, Value};

/// What a scalar is, by what it was taken for and how it is written.
pub(crate) fn resolved(value: Value, written: &str) -> Value {
    match value {
        Value::Bool(_) | Value::Null if is_word_in_mixed_case(written) => written.into(),
        Value::Number(number) => octal(written).map_or_else(|| whole(number), Value::from),
        other => other,
    }
}

/// What the name of a field is. A word for true or false is one there too.
pub(crate) fn resolved_name(name: String, written: &str) -> String {
    if name != written {
        return name;
    }
    match written {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "True" | "TRUE" => "true".to_owned(),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" | "False" | "FALSE" => "false".to_owned(),
        _ => name,
    }
}

/// Whether a name may be that of a number or of true or false.
pub(crate) fn may_be_written_otherwise(name: &str) -> bool {
    matches!(name, "true" | "false")
        || name.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}

/// `tRUE` is a text; `true`, `True` and `TRUE` are not.
fn is_word_in_mixed_case(written: &str) -> bool {
    const WORDS: [&str; 7] = ["true", "false", "yes", "no", "on", "off", "null"];
    let (first, rest) = written.split_at_checked(1).unwrap_or_default();
    let is_in_one_case = rest.chars().all(|c| c.is_ascii_lowercase())
        || written.chars().all(|c| c.is_ascii_uppercase());
    !first.is_empty()
        && !is_in_one_case
        && WORDS.iter().any(|word| word.eq_ignore_ascii_case(written))
}

/// `0644` counts in eights.
fn octal(written: &str) -> Option<i64> {
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", written.strip_prefix('+').unwrap_or(written)),
    };
    let digits = digits
        .strip_prefix('0')
        .filter(|digits| !digits.is_empty())?;
    i64::from_str_radix(&format!("{sign}{digits}"), 8).ok()
}

/// `1.0` is written as `1` on the way to the API server.
fn whole(number: Number) -> Value {
    /// From here on JSON is written with an exponent, if it does not overflow before.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < LIMIT => {
            // Whole and within range: nothing is cut off.
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within range")]
            let whole = float as i64;
            whole.into()
        }
        _ => Value::Number(number),
    }
}
