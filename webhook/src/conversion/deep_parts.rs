//! Parts of an object that are nested too deep for a parser, kept as text while the object is converted.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use lockstep_shared_validation::STORED_SPEC_PREFIX;
use serde_json::Value;

/// Number of maps and lists around a value that is read. `serde_json` reads 128 levels, the API server 10,000.
const LEVELS: usize = 100;

/// Deep parts of an object. A failed conversion of one object fails the list of all, so that each one has to be converted; and
/// nothing of it may be lost.
///
/// # Guarantees
///
/// A part that is cut and restored is unchanged. Equal parts have the same placeholder.
pub(super) struct DeepParts {
    /// Beginning of the strings in place of the parts. It is random, so that no user can write one.
    placeholder: String,
    texts: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl DeepParts {
    pub(super) fn new() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self {
            placeholder: format!("deep-part-{:016x}{:016x}-", random(), random()),
            texts: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Replaces each deep part of an object by a string.
    pub(super) fn cut(&mut self, object: &str) -> String {
        self.cut_below(object, LEVELS)
    }

    /// Replaces the deep parts of the specs that annotations store.
    pub(super) fn cut_stored_specs(&mut self, object: &mut Value) {
        let annotations = object.pointer_mut("/metadata/annotations");
        let annotations = annotations.and_then(Value::as_object_mut);
        for (name, value) in annotations.into_iter().flatten() {
            if let Value::String(spec) = value
                && name.starts_with(STORED_SPEC_PREFIX)
            {
                // The spec is a level below the object.
                *spec = self.cut_below(spec, LEVELS - 1);
            }
        }
    }

    /// Appends a text with all parts in it, also those in the texts of annotations.
    pub(super) fn restore(&self, text: &str, restored: &mut Vec<u8>) {
        let mut pieces = text.split(&self.placeholder);
        // Each piece ends with the quotation mark of the next placeholder, and begins with the number of the one before it.
        let mut before = pieces.next().unwrap_or_default();
        for piece in pieces {
            let digits = piece.find(|character: char| !character.is_ascii_digit());
            let (number, after) = piece.split_at(digits.unwrap_or(piece.len()));
            let part = number.parse().ok().and_then(|at: usize| self.texts.get(at));
            let part = part.map_or("", String::as_str);
            if let Some(outer) = before.strip_suffix("\\\"") {
                let quoted = Value::from(part).to_string();
                restored.extend(outer.bytes());
                restored.extend(quoted[1..quoted.len() - 1].bytes());
                before = after.strip_prefix("\\\"").unwrap_or(after);
            } else {
                restored.extend(before.strip_suffix('"').unwrap_or(before).bytes());
                restored.extend(part.bytes());
                before = after.strip_prefix('"').unwrap_or(after);
            }
        }
        restored.extend(before.bytes());
    }

    fn cut_below(&mut self, json: &str, levels: usize) -> String {
        let mut shallow = String::new();
        let (mut depth, mut begin, mut copied) = (0_usize, 0, 0);
        let (mut is_in_string, mut is_escaped) = (false, false);
        for (at, byte) in json.bytes().enumerate() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_in_string,
                b'"' => is_in_string = !is_in_string,
                _ if is_in_string => {}
                b'{' | b'[' => {
                    if depth == levels {
                        begin = at;
                    }
                    depth += 1;
                }
                b'}' | b']' => {
                    if depth == levels + 1 {
                        shallow.push_str(&json[copied..begin]);
                        copied = at + 1;
                        let number = self.number(&json[begin..copied]);
                        shallow.push_str(&format!("\"{}{number}\"", self.placeholder));
                    }
                    // An annotation may contain any text.
                    depth = depth.saturating_sub(1);
                }
                _ => {}
            }
        }
        shallow + &json[copied..]
    }

    fn number(&mut self, part: &str) -> usize {
        let number = *self
            .numbers
            .entry(part.to_owned())
            .or_insert(self.texts.len());
        if number == self.texts.len() {
            self.texts.push(part.to_owned());
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize, value: &str) -> String {
        format!("{}{value}{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn what_is_cut_and_restored_is_unchanged() {
        let deep = nested(9_000, r#""}\"\\""#);
        for text in [
            nested(LEVELS, "1"),
            nested(LEVELS + 1, r#"[1, "\u007d"]"#),
            format!(
                r#"{{"b": [{deep}, {{"ä": {deep}}}, {}], "c": "{{"}}"#,
                nested(300, "[]")
            ),
        ] {
            let mut parts = DeepParts::new();
            let shallow = parts.cut(&text);
            assert_eq!(parts.is_empty(), text == nested(LEVELS, "1"));
            serde_json::from_str::<Value>(&shallow).expect("it can be read");
            let mut restored = Vec::new();
            parts.restore(&shallow, &mut restored);
            assert_eq!(String::from_utf8(restored).expect("text"), text);
        }
    }

    #[test]
    fn a_stored_spec_is_cut_and_restored_whatever_it_contains() {
        let name = format!("{STORED_SPEC_PREFIX}v1");
        for spec in [
            nested(300, r#""ä\"\\n""#),
            "]}".repeat(300),
            "{[".repeat(300),
            r#"{"a": "\"#.to_owned(),
        ] {
            let object = json!({"metadata": {"annotations": {&name: spec, "other": spec}}});
            let mut cut = object.clone();
            let mut parts = DeepParts::new();
            parts.cut_stored_specs(&mut cut);
            let annotations = &cut["metadata"]["annotations"];
            assert_eq!(annotations["other"], spec);
            assert_eq!(annotations[&name] == spec, parts.is_empty());
            let mut restored = Vec::new();
            parts.restore(&cut.to_string(), &mut restored);
            let restored: Value = serde_json::from_slice(&restored).expect("JSON");
            assert_eq!(restored, object);
        }
    }

    #[test]
    fn equal_parts_have_one_placeholder() {
        let deep = nested(300, "1");
        let text = format!(r"[{deep}, {deep}, {}]", nested(300, "2"));
        let mut parts = DeepParts::new();
        let shallow: Value = serde_json::from_str(&parts.cut(&text)).expect("JSON");
        assert_eq!(shallow[0], shallow[1]);
        assert_ne!(shallow[0], shallow[2]);
    }
}
