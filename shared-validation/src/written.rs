//! An object as it is written: a text of which only as much is read as somebody asks for.

mod fields;
mod picked;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use fields::{Fields, Level};

pub(crate) use picked::Places;

/// The JSON text of an object.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a>(&'a str);

impl<'a> Written<'a> {
    /// The object that is written there.
    #[must_use]
    pub fn new(text: &'a RawValue) -> Self {
        Self(text.get())
    }

    /// Reads all of it but who has written which of its fields: no rule asks for that, and it is often the
    /// larger part.
    ///
    /// # Errors
    ///
    /// When it is nested deeper than the reader goes.
    pub fn read<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        if !self.0.starts_with('{') {
            return serde_json::from_str(self.0);
        }
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        T::deserialize(Fields::new(&mut deserializer, Level::Object))
    }

    /// The texts at some places.
    pub(crate) fn pick(self, places: &Places) -> serde_json::Result<Vec<Option<&'a RawValue>>> {
        places.pick(self.0)
    }
}

/// What is written there, null counting as nothing.
pub(crate) fn value(text: Option<&RawValue>) -> Option<Value> {
    let value = serde_json::from_str(text?.get()).ok()?;
    (value != Value::Null).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> serde_json::Result<Value> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Written::new(raw).read()
    }

    #[test]
    fn all_is_read_but_who_has_written_it() {
        let text = r#"{"a": [1], "metadata": {"name": "b", "managedFields": [{"c": 1}], "labels": {"managedFields": "d"}},
            "managedFields": 2}"#;
        let expected = json!({
            "a": [1],
            "metadata": {"name": "b", "labels": {"managedFields": "d"}},
            "managedFields": 2,
        });
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
            r#"{"metadata": true}"#,
            r#"{"metadata": -1}"#,
            r#"{"metadata": 1}"#,
            r#"{"metadata": 1.5}"#,
            r#"{"metadata": "a"}"#,
            r#"{"metadata": "\n"}"#,
            r#"{"metadata": [1]}"#,
            r#"{"meta\u0064ata": {"n\u0061me": 1}}"#,
        ] {
            let plain: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(read(text).expect("JSON"), plain);
        }
    }

    #[test]
    fn what_is_picked_is_what_stands_there() {
        let places = Places::of([
            vec!["spec", "a"],
            vec!["spec", "b", "c"],
            vec!["spec", "none"],
            vec!["metadata", "annotations", "x.y/z"],
        ]);
        let text = r#"{"spec": {"b": {"c": [1, {"d": 2}], "e": "}"}, "a": null}, "more": [[]],
            "metadata": {"annotations": {"x.y/z": "there"}}}"#;
        let raw: &RawValue = serde_json::from_str(text).expect("JSON");
        let picked = Written::new(raw).pick(&places).expect("JSON");
        let picked: Vec<_> = picked.into_iter().map(value).collect();
        assert_eq!(
            picked,
            [None, Some(json!([1, {"d": 2}])), None, Some(json!("there"))]
        );
        for odd in [r#"{"spec": [1], "metadata": "a"}"#, "[]", "null"] {
            let raw: &RawValue = serde_json::from_str(odd).expect("JSON");
            let picked = Written::new(raw).pick(&places).expect("JSON");
            assert!(picked.iter().all(Option::is_none), "{odd}");
        }
    }
}
