//! Scalar resolution as in `kubectl`, which reads YAML 1.1 and passes numbers on as JSON.

use serde_json::{Number, Value};

/// Resolves a scalar from its parsed value and its source text.
pub(crate) fn resolved(value: Value, written: &str) -> Value {
    match value {
        Value::Bool(_) | Value::Null if is_word_in_mixed_case(written) => written.into(),
        Value::Number(number) => octal(written).map_or_else(|| whole(number), Value::from),
        other => other,
    }
}

/// Resolves the name of a field. A word for true or false is a boolean in a name, too.
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

/// Returns true if a name may come from a number or a boolean, which have several spellings.
pub(crate) fn may_be_written_otherwise(name: &str) -> bool {
    matches!(name, "true" | "false")
        || name.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}

/// Returns true for words such as `tRUE`, which is a string; `true`, `True` and `TRUE` are not.
fn is_word_in_mixed_case(written: &str) -> bool {
    const WORDS: [&str; 7] = ["true", "false", "yes", "no", "on", "off", "null"];
    let (first, rest) = written.split_at_checked(1).unwrap_or_default();
    let is_in_one_case = rest.chars().all(|c| c.is_ascii_lowercase())
        || written.chars().all(|c| c.is_ascii_uppercase());
    !first.is_empty()
        && !is_in_one_case
        && WORDS.iter().any(|word| word.eq_ignore_ascii_case(written))
}

/// Parses an octal number such as `0644`.
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

/// Converts a whole float to an integer: `1.0` is sent to the API server as `1`.
fn whole(number: Number) -> Value {
    /// JSON numbers from this value on are written with an exponent, unless they overflow first.
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::check::yaml::document::read_all;

    /// Scalars that YAML 1.1, which `kubectl` reads, and YAML 1.2 may resolve differently.
    const SCALARS: &[&str] = &[
        "yes",
        "Yes",
        "YES",
        "no",
        "on",
        "off",
        "On",
        "OFF",
        "y",
        "n",
        "Y",
        "N",
        "true",
        "True",
        "TRUE",
        "tRUE",
        "false",
        "~",
        "null",
        "Null",
        "NULL",
        "nULL",
        "",
        "0",
        "-0",
        "+1",
        "-1",
        "1_000",
        "0x1F",
        "-0x1F",
        "0o17",
        "017",
        "08",
        "0b101",
        "-0b1",
        "1:30",
        "1:30:15",
        "1.",
        ".5",
        "-.5",
        "+.5",
        "1.5",
        "1e3",
        "1E3",
        "1e+3",
        "1.e3",
        ".inf",
        "-.Inf",
        "+.INF",
        ".nan",
        ".NaN",
        "inf",
        "nan",
        "100.0",
        "16.4",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "2024-01-01 00:00:00",
        "1.2.3",
        "10.0.0.1",
        "1,000",
        "'yes'",
        "\"no\"",
        "!!str 1",
        "!!int '1'",
        "!!bool 'yes'",
        "!!float 1",
        "!!null ''",
        "=",
        "<<",
        "@a",
        "`a",
        "%a",
        "a: b",
        "a #b",
        "a#b",
        "[a, b, ]",
        "{a: b, }",
        "[yes, 1]",
        "{a, b}",
        "- a",
        "? a",
        "|\n  a\n  b\n",
        ">-\n  a\n  b\n",
        "\"\\u00e9\\n\"",
        "'it''s'",
        "\"\\x41\"",
        "&a 1",
        "*a",
        "12e03",
        "0.1e-2",
        "_1",
        "0x",
        "0xg",
        "00",
        "-017",
        "1e",
        "e1",
        ".",
        "-",
        "..",
        "--",
        "...a",
        "!!binary aGk=",
        "!!set {a}",
    ];

    /// Returns the value that Lockstep reads from a text, or `None` if it is rejected.
    fn parsed(text: &str) -> Option<Value> {
        let documents = read_all(text).ok()?;
        assert_eq!(documents.len(), 1, "{text}");
        Some(documents[0].to_value())
    }

    #[test]
    fn scalars_are_resolved_as_in_kubectl() {
        let texts: Vec<_> = SCALARS
            .iter()
            .map(|scalar| format!("a: {scalar}\n"))
            .collect();
        let texts: Vec<_> = texts
            .into_iter()
            .chain(
                [
                    "yes: 1\n",
                    "1: a\n",
                    "1.5: a\n",
                    "null: a\n",
                    "true: a\n",
                    "? [a]\n: b\n",
                    "a: &x {b: 1}\nc: *x\n",
                    "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n",
                    "a:\n- b\n- c\n",
                    "a:\n  - b\n",
                    "a: |\n  x\n\n  y\n",
                    "a: >\n  x\n  y\n\n  z\n",
                    "a: 'x\n  y'\n",
                    "a:\tb\n",
                    "a: b\t\n",
                    "%YAML 1.1\n---\na: yes\n",
                    "\u{feff}a: b\n",
                    "a: b\r\nc: d\r\n",
                    "a: \u{7f}\n",
                ]
                .map(String::from),
            )
            .collect();
        let responses =
            lockstep_envtest::oracle("read-yaml", &serde_json::json!(texts)).expect("answers");
        let mut differing = Vec::new();
        for (text, response) in texts.iter().zip(responses.as_array().expect("a list")) {
            let expected = response["json"]
                .as_str()
                .map(|json| serde_json::from_str::<Value>(json).expect("JSON"));
            let parsed = parsed(text);
            if parsed != expected {
                differing.push(format!(
                    "{text:?}: here {parsed:?}, kubectl {expected:?} {}",
                    response["error"]
                ));
            }
        }
        assert!(differing.is_empty(), "{}", differing.join("\n"));
    }
}
