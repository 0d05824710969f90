//! Go formatting of values, because error messages must equal those of the API server byte for byte.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value};

/// Quotes a string as `strconv.Quote`: in double quotes, with all characters escaped that Go does not consider
/// printable.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c if c < '\u{80}' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if c <= '\u{ffff}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
    out
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
    write_json(value, &mut out);
    out
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&json_number(number)),
        Value::String(text) => out.push_str(&json_string(text)),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (i, (name, field)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&json_string(name));
                out.push(':');
                write_json(field, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
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

/// Formats a value as `%v`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => plain_number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(name, field)| format!("{name}:{}", plain(field)))
                .collect();
            format!("map[{}]", fields.join(" "))
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
