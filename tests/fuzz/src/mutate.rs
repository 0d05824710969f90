//! Mutations that keep the input valid JSON. The byte mutations of the fuzzer seldom pass the parser.

use std::sync::LazyLock;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::validators;

/// Strings with a special meaning for schemas, formats and rules.
const TEXTS: &[&str] = &[
    "",
    "0",
    "-1",
    "a",
    "A-b",
    "é",
    "\u{0}",
    "\u{10ffff}",
    "a\nb",
    "true",
    "null",
    "1.5",
    "1e309",
    "10.0.0.1",
    "10.0.0.0/8",
    "::1",
    "fe80::1%eth0",
    "2001:db8::/32",
    "1Gi",
    "1.5e3",
    "-0",
    "100m",
    "2026-02-29",
    "2026-02-28T23:59:60Z",
    "1h2m3s",
    "24:00:00",
    "user@example.com",
    "https://[::1]:80/?a#b",
    "%zz",
    "1.2.3",
    "v1.2.3-rc.1+x",
    "17",
    "16.4",
    "8.0.36",
    "00000000-0000-0000-0000-000000000000",
    "YQ==",
    "db.t4g.micro",
    "sun:23:30-mon:00:30",
    "23:30-00:30",
    "postgres",
    "mysql",
    "io2",
    "aws:x",
    "2020-01-01T00:00:00Z",
    "False",
    "Valid",
    "^(a+)+$",
    "(?i)[",
    "#ffffff",
    "9780306406157",
];

/// All field names and enumerated values of the CRDs.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut words = Vec::new();
    for validator in validators::all() {
        collect(validator.crd(), &mut words);
    }
    for own in [
        "metadata",
        "name",
        "namespace",
        "labels",
        "deletionTimestamp",
        "finalizers",
        "status",
    ] {
        words.push(own.to_owned());
    }
    words.sort();
    words.dedup();
    words
});

/// Returns the words of the CRDs, as a dictionary for the fuzzer.
pub fn words() -> &'static [String] {
    &WORDS
}

fn collect(schema: &Value, words: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
                words.extend(properties.keys().cloned());
            }
            if let Some(options) = fields.get("enum").and_then(Value::as_array) {
                words.extend(options.iter().filter_map(Value::as_str).map(String::from));
            }
            fields.values().for_each(|child| collect(child, words));
        }
        Value::Array(items) => items.iter().for_each(|child| collect(child, words)),
        _ => {}
    }
}

/// Mutates one or a few places of the JSON texts in `data`, one per line. Uses `bytes`, the byte mutation of the
/// fuzzer, if `data` is not JSON, and sometimes even if it is.
pub fn json_lines(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    bytes: impl Fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut rng = Rng::with_seed(u64::from(seed));
    if rng.u8(..5) > 0
        && let Some(changed) = changed(&data[..size], &mut rng)
        && changed.len() <= max_size.min(data.len())
    {
        data[..changed.len()].copy_from_slice(changed.as_bytes());
        return changed.len();
    }
    bytes(data, size, max_size)
}

fn changed(data: &[u8], rng: &mut Rng) -> Option<String> {
    let text = str::from_utf8(data).ok()?;
    let lines: Result<Vec<Value>, _> = text.lines().take(2).map(serde_json::from_str).collect();
    let mut lines = lines.ok()?;
    if lines.is_empty() {
        return None;
    }
    // An object and its old version reveal most when they are nearly equal.
    match rng.u8(..20) {
        0 => lines = vec![lines[0].clone(), lines[0].clone()],
        1 => lines.truncate(1),
        2 => lines.reverse(),
        _ => {}
    }
    for _ in 0..rng.usize(1..4) {
        let source = rng.usize(..lines.len());
        let source = pick(&mut lines[source], rng).clone();
        let line = rng.usize(..lines.len());
        change(pick(&mut lines[line], rng), source, rng);
    }
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    Some(lines.join("\n"))
}

/// Returns a random place of a value: the value itself with a probability of one fifth, else a place in one of its
/// children.
fn pick<'a>(value: &'a mut Value, rng: &mut Rng) -> &'a mut Value {
    let children = match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if children == 0 || rng.u8(..5) == 0 {
        return value;
    }
    let chosen = rng.usize(..children);
    let child = match value {
        Value::Object(fields) => fields.values_mut().nth(chosen),
        Value::Array(items) => items.get_mut(chosen),
        _ => None,
    };
    pick(
        child.expect("the index is below the number of children"),
        rng,
    )
}

fn change(value: &mut Value, source: Value, rng: &mut Rng) {
    match rng.u8(..10) {
        0 => *value = source,
        1 => *value = scalar(rng),
        _ => match value {
            Value::Object(fields) => change_fields(fields, source, rng),
            Value::Array(items) => match rng.u8(..4) {
                0 => items.push(source),
                1 => items.push(scalar(rng)),
                2 if !items.is_empty() => drop(items.swap_remove(rng.usize(..items.len()))),
                _ => items.extend(items.clone().into_iter().take(8)),
            },
            Value::String(text) => *text = changed_text(text, rng),
            Value::Number(number) => {
                *value = match (number.as_i64(), rng.u8(..5)) {
                    (Some(n), 0) => n.wrapping_add(1).into(),
                    (Some(n), 1) => n.wrapping_sub(1).into(),
                    (Some(n), 2) => n.wrapping_mul(10).into(),
                    (Some(n), 3) => json!(n.to_string()),
                    _ => scalar(rng),
                }
            }
            Value::Bool(flag) => *flag = !*flag,
            Value::Null => *value = scalar(rng),
        },
    }
}

fn change_fields(fields: &mut Map<String, Value>, source: Value, rng: &mut Rng) {
    let name = fields.keys().nth(rng.usize(..=fields.len())).cloned();
    match (rng.u8(..4), name) {
        (0, Some(name)) => drop(fields.remove(&name)),
        (1, Some(name)) => {
            let value = fields.remove(&name).unwrap_or_default();
            fields.insert(word(rng), value);
        }
        (2, _) => drop(fields.insert(word(rng), source)),
        _ => drop(fields.insert(word(rng), scalar(rng))),
    }
}

fn word(rng: &mut Rng) -> String {
    match rng.u8(..8) {
        0 => text(rng).to_owned(),
        _ => words()[rng.usize(..words().len())].clone(),
    }
}

fn text(rng: &mut Rng) -> &'static str {
    TEXTS[rng.usize(..TEXTS.len())]
}

fn changed_text(old: &str, rng: &mut Rng) -> String {
    let at = rng.usize(..=old.chars().count());
    let (before, after): (Vec<_>, Vec<_>) = old.chars().enumerate().partition(|(i, _)| *i < at);
    let before: String = before.into_iter().map(|(_, c)| c).collect();
    let after: String = after.into_iter().map(|(_, c)| c).collect();
    match rng.u8(..6) {
        0 => before,
        1 => after,
        2 => format!("{before}{}{after}", text(rng)),
        3 => format!("{before}{}{after}", rng.char(..)),
        4 => old.repeat(rng.usize(2..5)),
        _ => word(rng),
    }
}

fn scalar(rng: &mut Rng) -> Value {
    match rng.u8(..12) {
        0 | 1 => Value::Null,
        2 => rng.bool().into(),
        3 => json!({}),
        4 => json!([]),
        5 => [0, 1, -1, 20, 100, 400, 1000, 65536][rng.usize(..8)].into(),
        6 => [i64::MIN, i64::MAX, i64::from(i32::MAX) + 1, 1 << 53][rng.usize(..4)].into(),
        7 => json!(u64::MAX),
        8 => json!([0.1, -0.0, 1e300, 5e-324, 1.0, 1e19][rng.usize(..6)]),
        9 => word(rng).into(),
        _ => text(rng).into(),
    }
}
