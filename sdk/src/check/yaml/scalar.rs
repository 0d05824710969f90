//! Types of scalars, as in the YAML parser of `kubectl` (YAML 1.1), which passes them on as JSON.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Number, Value};

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// Floats of YAML. Other texts that begin like a number are texts.
static FLOAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$").expect("valid")
});

static TIMESTAMP: LazyLock<Regex> = LazyLock::new(|| {
    let date = "[0-9]{4}-(0?[1-9]|1[0-2])-(0?[1-9]|[12][0-9]|3[01])";
    let time = "[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.,][0-9]+)?";
    let zone = "(Z|[-+][0-9]{2}:[0-9]{2})";
    let pattern = format!("^{date}([Tt]{time}{zone}| {time})?$");
    Regex::new(&pattern).expect("valid")
});

/// Resolves a scalar. `is_plain` is true if it has no quotes and no tag.
///
/// # Errors
///
/// The text is not of the type that its tag names, or JSON has no such value.
pub(crate) fn resolve(tag: Option<&str>, is_plain: bool, text: String) -> Result<Value, String> {
    let Some(tag) = tag else {
        return if is_plain {
            finite(untagged(&text))?.map_or(Ok(text.into()), Ok)
        } else {
            Ok(text.into())
        };
    };
    let type_ = tag.strip_prefix(TAG_PREFIX).unwrap_or(tag);
    let is_timestamp = || TIMESTAMP.is_match(&text);
    let wrong = || {
        format!(
            "the value `{}` is no {type_}, as its tag says",
            shown(&text)
        )
    };
    match type_ {
        "binary" => {
            let bytes = STANDARD.decode(text.as_bytes());
            let bytes = bytes.map_err(|_| "the value of a `!!binary` must be base64".to_owned())?;
            Ok(String::from_utf8_lossy(&bytes).into())
        }
        "timestamp" if is_timestamp() => Ok(text.into()),
        "bool" | "int" | "float" | "null" | "timestamp" => {
            let resolved = finite(untagged(&text))?;
            let resolved = resolved.filter(|value| match type_ {
                "bool" => value.is_boolean(),
                "int" => value.is_i64() || value.is_u64(),
                "float" => value.is_number(),
                "null" => value.is_null(),
                _ => false,
            });
            resolved.ok_or_else(wrong)
        }
        // A text, or a type that `kubectl` does not know.
        _ => Ok(text.into()),
    }
}

/// Returns the name of the field that a scalar is, if it can be one.
pub(crate) fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_f64() => {
            #[expect(clippy::cast_possible_truncation, reason = "kubectl writes 32 bits")]
            let float = number.as_f64()? as f32;
            Some(shortest(float))
        }
        Value::Number(number) => number.as_i64().map(|number| number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns how `kubectl` writes a number that is not finite. The name of a field may be one.
pub(crate) fn not_finite(text: &str) -> Option<&'static str> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(".nan"),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(".inf"),
        "-.inf" | "-.Inf" | "-.INF" => Some("-.inf"),
        _ => None,
    }
}

/// Prints a float with the fewest digits, as Go's format `g` does.
fn shortest(float: f32) -> String {
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Value of a plain scalar that is no text.
enum Untagged {
    Value(Value),
    NotFinite,
    Text,
}

fn finite(value: Untagged) -> Result<Option<Value>, String> {
    match value {
        Untagged::Value(value) => Ok(Some(value)),
        Untagged::NotFinite => Err("JSON has no such number; write a finite one".to_owned()),
        Untagged::Text => Ok(None),
    }
}

fn untagged(text: &str) -> Untagged {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Untagged::Value(true.into())
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Untagged::Value(false.into())
        }
        "" | "~" | "null" | "Null" | "NULL" => Untagged::Value(Value::Null),
        _ if not_finite(text).is_some() => Untagged::NotFinite,
        _ if text.starts_with('.') => float(text),
        _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-') => number(text),
        _ => Untagged::Text,
    }
}

fn number(text: &str) -> Untagged {
    if TIMESTAMP.is_match(text) {
        return Untagged::Text;
    }
    let digits = text.replace('_', "");
    if let Some(whole) = whole_number(&digits) {
        return Untagged::Value(whole);
    }
    float(&digits)
}

/// Parses an integer with the prefixes of Go: `0x`, `0o`, `0b`, and `0` for octal ones.
fn whole_number(text: &str) -> Option<Value> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (&text[..1], digits),
        None => ("", text),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = if let Some(digits) = lower.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (digits, 2)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (digits, 8)
    } else if let Some(digits) = lower.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        (digits, 8)
    } else {
        (&*lower, 10)
    };
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    if let Ok(signed) = i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        return Some(signed.into());
    }
    let unsigned = u64::from_str_radix(digits, radix).ok()?;
    sign.is_empty().then(|| unsigned.into())
}

/// Parses a float. One that is too large is a text.
fn float(text: &str) -> Untagged {
    let parsed = FLOAT.is_match(text).then(|| text.parse::<f64>().ok());
    let finite = parsed.flatten().and_then(Number::from_f64);
    finite.map_or(Untagged::Text, |number| Untagged::Value(whole(number)))
}

/// Converts a whole float to an integer: `1.0` is sent to the API server as `1`.
fn whole(number: Number) -> Value {
    /// JSON numbers from this value on are written with an exponent, unless they overflow first.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && float.abs() < LIMIT => {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within range")]
            let whole = float as i64;
            whole.into()
        }
        _ => Value::Number(number),
    }
}

/// Returns the beginning of a text, for messages.
fn shown(text: &str) -> String {
    lockstep_shared_validation::shortened(text, 40).into_owned()
}
