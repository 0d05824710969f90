//! Go formatting of values, because error messages must equal those of the API server byte for byte.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value};

/// Quotes a string as `strconv.Quote`: in double quotes, with all characters escaped that Go does not consider
/// printable.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    written(write_quoted(text, &mut out));
    out
}

/// Writes a string as [`quote`] returns it.
pub(crate) fn write_quoted(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\u{7}' => out.write_str("\\a")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{b}' => out.write_str("\\v")?,
            '\u{c}' => out.write_str("\\f")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            c if is_printable(c) => out.write_char(c)?,
            c if c < '\u{80}' => write!(out, "\\x{:02x}", c as u32)?,
            c if c <= '\u{ffff}' => write!(out, "\\u{:04x}", c as u32)?,
            c => write!(out, "\\U{:08x}", c as u32)?,
        }
    }
    out.write_char('"')
}

/// Asserts that a text without a maximum length was written.
fn written(result: fmt::Result) {
    result.expect("a string accepts any text");
}

/// Implements `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
fn is_printable(c: char) -> bool {
    static PRINTABLE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[[\p{L}\p{M}\p{N}\p{P}\p{S}]&&\p{age:15.0}]$")
            .expect("the literal expression is valid, as a test verifies")
    });
    let ascii = c == ' ' || c.is_ascii_graphic();
    ascii || (!c.is_ascii() && PRINTABLE.is_match(c.encode_utf8(&mut [0; 4])))
}

/// Formats a value as `encoding/json.Marshal`: keys sorted; `<`, `>`, `&` and the line separators escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    written(write_json(value, &mut out));
    out
}

/// Writes a value as [`json`] returns it.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_json(value: &Value, out: &mut impl fmt::Write) -> fmt::Result {
    match value {
        Value::Number(number) => out.write_str(&json_number(number)),
        Value::String(text) => write_json_string(text, out),
        Value::Array(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                write_json(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            out.write_char('{')?;
            for (i, (name, field)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                write_json_string(name, out)?;
                out.write_char(':')?;
                write_json(field, out)?;
            }
            out.write_char('}')
        }
        Value::Null => out.write_str("null"),
        Value::Bool(flag) => write!(out, "{flag}"),
    }
}

/// Length of the parts in which a string is written. Each is copied once before.
const PART_BYTES: usize = 4 << 10;

fn write_json_string(mut text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    out.write_char('"')?;
    while !text.is_empty() {
        let (part, rest) = text.split_at(text.floor_char_boundary(PART_BYTES));
        let quoted = json_string(part);
        out.write_str(&quoted[1..quoted.len() - 1])?;
        text = rest;
    }
    out.write_char('"')
}

fn json_string(text: &str) -> String {
    let plain = Value::from(text).to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    plain
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Formats a number as `encoding/json`: the shortest form, with an exponent below 1e-6 and from 1e21.
pub(crate) fn json_number(number: &Number) -> String {
    number_text(number, 1e-6, 1e21)
}

/// Formats a number as `%v`: the shortest form, with an exponent of two digits below 1e-4 and from 1e6.
pub(crate) fn plain_number(number: &Number) -> String {
    let text = number_text(number, 1e-4, 1e6);
    match text.split_once('e') {
        Some((mantissa, exponent)) if exponent.len() == 2 => {
            let (sign, digit) = exponent.split_at(1);
            format!("{mantissa}e{sign}0{digit}")
        }
        _ => text,
    }
}

/// Writes a value as `%v` formats it.
pub(crate) fn write_plain(value: &Value, out: &mut impl fmt::Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("<nil>"),
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Number(number) => out.write_str(&plain_number(number)),
        Value::String(text) => out.write_str(text),
        Value::Array(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(' ')?;
                }
                write_plain(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            out.write_str("map[")?;
            for (i, (name, field)) in fields.into_iter().enumerate() {
                if i > 0 {
                    out.write_char(' ')?;
                }
                write!(out, "{name}:")?;
                write_plain(field, out)?;
            }
            out.write_char(']')
        }
    }
}

/// Returns the type of a value as `%T`.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn number_text(number: &Number, smallest: f64, largest: f64) -> String {
    let Some(float) = number.as_f64().filter(|_| number.as_i64().is_none()) else {
        return number.to_string();
    };
    let magnitude = float.abs();
    if magnitude != 0.0 && (magnitude < smallest || magnitude >= largest) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                format!("{mantissa}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quoting_escapes_what_go_does_not_print() {
        assert_eq!(
            quote("a\"b\\c\n\u{7f}\u{200b}é漢\u{301}😀"),
            "\"a\\\"b\\\\c\\n\\x7f\\u200bé漢\u{301}😀\""
        );
    }

    #[test]
    fn json_sorts_keys_and_escapes_html() {
        assert_eq!(
            json(&json!({"b": 1.0, "a": "<&>"})),
            r#"{"a":"\u003c\u0026\u003e","b":1}"#
        );
    }

    #[test]
    fn floats_change_to_exponents_where_go_does() {
        let number = |f: f64| Number::from_f64(f).expect("finite");
        assert_eq!(plain_number(&number(1.5)), "1.5");
        assert_eq!(plain_number(&number(1e21)), "1e+21");
        assert_eq!(plain_number(&number(1_234_567.0)), "1.234567e+06");
        assert_eq!(json_number(&number(1_234_567.0)), "1234567");
        assert_eq!(plain_number(&number(0.000_01)), "1e-05");
        assert_eq!(json_number(&number(0.000_01)), "0.00001");
        assert_eq!(json_number(&number(1e-7)), "1e-7");
    }
}
