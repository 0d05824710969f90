//! JSON parser that reports duplicate fields, as the API server does, instead of dropping them silently.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::field::path::{Cursor, FieldPath};

/// Parsed JSON text.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedJson {
    /// The value. Of a duplicate field, it contains the last occurrence.
    pub value: Value,
    /// Paths of the duplicate fields.
    pub duplicate_keys: Vec<FieldPath>,
}

impl ParsedJson {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// If the text is not valid JSON, or is nested deeper than the parser allows.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let duplicates = RefCell::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = Seed {
            at: Cursor::Root,
            duplicates: &duplicates,
        };
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Self {
            value,
            duplicate_keys: duplicates.into_inner(),
        })
    }
}

#[derive(Clone, Copy)]
struct Seed<'a> {
    at: Cursor<'a>,
    duplicates: &'a RefCell<Vec<FieldPath>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let seed = Seed {
                at: self.at.index(items.len()),
                ..self
            };
            match access.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let at = self.at.child(&name);
            let value = access.next_value_seed(Seed { at, ..self })?;
            if fields.contains_key(&name) {
                self.duplicates.borrow_mut().push(at.to_path());
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicate_fields_are_reported_by_path() {
        let read = ParsedJson::parse(r#"{"a": {"b": [1, {"c": 1, "c": 2}]}, "a": null, "f": 1.0}"#);
        let read = read.expect("valid JSON");
        assert_eq!(read.value, json!({"a": null, "f": 1.0}));
        let duplicates: Vec<_> = read.duplicate_keys.iter().map(FieldPath::as_str).collect();
        assert_eq!(duplicates, ["a.b[1].c", "a"]);
        assert!(ParsedJson::parse("{} {}").is_err());
        assert!(ParsedJson::parse("{\"a\": 1").is_err());
    }
}
