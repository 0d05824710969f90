//! An object as far as anybody judges it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads an object without who has written which of its fields: no rule asks for that, and it is often the
/// larger part.
pub(crate) fn read(raw: &RawValue) -> serde_json::Result<Value> {
    fields(raw, |name| match name {
        "metadata" => Field::Within,
        _ => Field::Whole,
    })
}

fn metadata(raw: &RawValue) -> serde_json::Result<Value> {
    fields(raw, |name| match name {
        "managedFields" => Field::Passed,
        _ => Field::Whole,
    })
}

/// What is read of a field.
enum Field {
    Whole,
    /// It is metadata.
    Within,
    Passed,
}

fn fields(raw: &RawValue, choose: fn(&str) -> Field) -> serde_json::Result<Value> {
    let text = raw.get();
    if !text.starts_with('{') {
        return serde_json::from_str(text);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Choosing(choose).deserialize(&mut deserializer)
}

struct Choosing(fn(&str) -> Field);

impl<'de> DeserializeSeed<'de> for Choosing {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Choosing {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match (self.0)(&name) {
                Field::Whole => map.next_value()?,
                Field::Within => {
                    let raw: &RawValue = map.next_value()?;
                    metadata(raw).map_err(serde::de::Error::custom)?
                }
                Field::Passed => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> serde_json::Result<Value> {
        let raw: &RawValue = serde_json::from_str(text)?;
        super::read(raw)
    }

    #[test]
    fn all_is_read_but_who_has_written_it() {
        let text = r#"{"a": [1], "metadata": {"name": "b", "managedFields": [{"c": 1}], "labels": {"managedFields": "d"}}}"#;
        let expected =
            json!({"a": [1], "metadata": {"name": "b", "labels": {"managedFields": "d"}}});
        assert_eq!(read(text).expect("JSON"), expected);
    }

    #[test]
    fn what_is_no_object_is_read_as_it_is() {
        for text in [
            "null",
            "[1]",
            "1",
            r#""a""#,
            r#"{"metadata": null}"#,
            r#"{"metadata": [1]}"#,
        ] {
            let plain: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(read(text).expect("JSON"), plain);
        }
    }
}
