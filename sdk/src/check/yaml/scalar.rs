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
        "\"a\\/b\"",
        "\"a\\\\/b\"",
        "|\n  a\n ",
        "|\n  a\n    ",
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

    /// Places of a scalar, with `@` for it.
    const PLACES: &[&str] = &[
        "a: @\n",
        "@: a\n",
        "- @\n",
        "a: [@]\n",
        "a: [b, @, c]\n",
        "a: {b: @}\n",
        "a: {@: b}\n",
        "a: {b: @, c: d}\n",
        "a: [@:, b]\n",
        "a: [b, @::]\n",
        "a: [@::1, 1.2.3.4]\n",
        "a: [@ ? b]\n",
        "a: [@?, b]\n",
        "a: &x @\nb: *x\n",
        "a:\n  @\n",
        "a:\n- b: @\n  c: d\n",
        "a: @ # comment\n",
        "a: @\t# comment\n",
        "a: @\n  more\n",
        "a: ! @\n",
        "a: '@'\n",
        "a: \"@\"\n",
        "@\n",
    ];

    /// Texts that are put together at random.
    const TOKENS: &[&str] = &[
        "a", "b", "y", "1", "0x1", "1.5", "~", " ", "  ", "\n", "\n  ", "\n- ", "\n    ", ":",
        ": ", "- ", "? ", ", ", ",", "[", "]", "{", "}", "&x ", "*x", "!!str ", "!t ", "|\n",
        ">-\n", "'", "\"", "\\n", "\\", "#", " # c", "\t", "<<: ", "%", "@", "`", "::", "...",
        "\n---\n", "é", "\r\n", "/", ".", "-", "_",
    ];

    /// Unusual texts that are read otherwise: something follows a collection on its line, or a name has two lines.
    const UNUSUAL: &[&str] = &[
        "[]\tb\\n: |\n`\":|\n",
        "[][\t>-\né1\"\n    %-",
        "[]1: b...",
        "{\n    \n\\? aé@1.5} # ca",
        "{}1.51.5: ::1, &x ",
    ];

    fn random_texts(count: usize) -> Vec<String> {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).expect("it is below")
        };
        let mut text = || {
            let tokens = (0..2 + next(11)).map(|_| TOKENS[next(TOKENS.len())]);
            let text: String = tokens.collect();
            if next(3) == 0 {
                text
            } else {
                format!("a: {text}\n")
            }
        };
        (0..count).map(|_| text()).collect()
    }

    /// Returns how the texts are read that are read otherwise than by `kubectl`. Left out is what is rejected on purpose: a repeated
    /// name, and a text after the end of a document, which `kubectl` ignores. Documents are separated before they are read.
    fn differing(texts: &[String]) -> Vec<String> {
        let responses =
            lockstep_envtest::oracle("read-yaml", &serde_json::json!(texts)).expect("answers");
        let mut differing = Vec::new();
        let responses = responses.as_array().expect("a list");
        for (text, response) in texts.iter().zip(responses) {
            let ends_before_its_end = text.contains("\n---\n") || text.contains("\n...");
            if ends_before_its_end || UNUSUAL.contains(&text.as_str()) {
                continue;
            }
            let expected = response["json"]
                .as_str()
                .map(|json| serde_json::from_str::<Value>(json).expect("JSON"));
            let read = match read_all(text) {
                Ok(documents) => match &documents[..] {
                    [] => Ok(Value::Null),
                    [document] => Ok(document.to_value()),
                    _ => continue,
                },
                Err(problem) if problem.contains("duplicate") => continue,
                Err(problem) if problem.contains("<document start>") => continue,
                Err(problem) => Err(problem),
            };
            if read.as_ref().ok() != expected.as_ref() {
                let error = &response["error"];
                differing.push(format!(
                    "{text:?}: here {read:?}, kubectl {expected:?} {error}"
                ));
            }
        }
        differing
    }

    #[test]
    fn texts_are_read_as_kubectl_reads_them() {
        let in_places = PLACES
            .iter()
            .flat_map(|place| SCALARS.iter().map(|scalar| place.replace('@', scalar)));
        let random = std::env::var("RANDOM_TEXTS").ok();
        let random = random.map_or(20_000, |count| count.parse().expect("a number"));
        let texts: Vec<_> = in_places.chain(random_texts(random)).collect();
        let differing = differing(&texts);
        let count = differing.len();
        assert!(
            differing.is_empty(),
            "{count} of {}:\n{}",
            texts.len(),
            differing.join("\n")
        );
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
        let differing = differing(&texts);
        assert!(differing.is_empty(), "{}", differing.join("\n"));
    }
}
