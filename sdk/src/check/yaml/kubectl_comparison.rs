//! Comparison with the YAML library of `kubectl`.

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
    "a", "b", "y", "1", "0x1", "1.5", "~", " ", "  ", "\n", "\n  ", "\n- ", "\n    ", ":", ": ",
    "- ", "? ", ", ", ",", "[", "]", "{", "}", "&x ", "*x", "!!str ", "!t ", "|\n", ">-\n", "'",
    "\"", "\\n", "\\", "#", " # c", "\t", "<<: ", "%", "@", "`", "::", "...", "\n---\n", "é",
    "\r\n", "/", ".", "-", "_",
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
