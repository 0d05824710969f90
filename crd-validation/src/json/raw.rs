//! Parsed object that borrows strings from its JSON text.

mod decode;
mod tree;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::raw::tree::Reader;

pub use crate::json::raw::tree::{MAX_DEPTH, Tree};

/// Parsed object that borrows from its text.
#[derive(Debug)]
pub struct RawObject<'a>(Tree<'a>);

impl<'a> RawObject<'a> {
    /// Parses an object without `metadata.managedFields` and without what is nested in more than [`MAX_DEPTH`] maps and
    /// lists, which is null.
    ///
    /// # Errors
    ///
    /// If the text contains a number that no type can represent.
    pub fn parse(text: &'a RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(text.get())
    }

    /// Returns the object as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        self.0.to_value()
    }

    /// Returns the object as a tree, from which any type can be deserialized.
    #[must_use]
    pub fn tree(&self) -> &Tree<'a> {
        &self.0
    }

    /// Returns the object as a tree, which may be changed.
    #[must_use]
    pub fn into_tree(self) -> Tree<'a> {
        self.0
    }
}

/// Converts to a JSON value.
impl From<RawObject<'_>> for Value {
    fn from(written: RawObject<'_>) -> Self {
        written.to_value()
    }
}

impl<'de> Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reader::OBJECT.deserialize(deserializer).map(Self)
    }
}

/// Parsed metadata of an object, without everything else.
#[derive(Debug)]
pub struct RawMetadata<'a>(Tree<'a>);

impl<'a> RawMetadata<'a> {
    /// Returns the metadata as a tree, from which any type can be deserialized.
    #[must_use]
    pub fn into_tree(self) -> Tree<'a> {
        self.0
    }
}

impl<'de> Deserialize<'de> for RawMetadata<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor).map(Self)
    }
}

/// Visitor of an object that skips all fields except its metadata.
struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Tree<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let mut metadata = Tree::Object(Vec::new());
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == "metadata" {
                metadata = map.next_value_seed(Reader::METADATA)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(metadata)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> serde_json::Result<Value> {
        let raw: &RawValue = serde_json::from_str(text)?;
        RawObject::parse(raw).map(|written| written.to_value())
    }

    #[test]
    fn everything_except_managed_fields_is_parsed() {
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
    fn what_is_nested_too_deep_is_null_however_deep_it_is() {
        let nested =
            |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let as_it_is: Value = serde_json::from_str(&nested(MAX_DEPTH)).expect("JSON");
        assert_eq!(read(&nested(MAX_DEPTH)).expect("JSON"), as_it_is);
        for levels in [MAX_DEPTH + 1, 300, 1_000_000] {
            let mut expected = Value::Null;
            for _ in 0..=MAX_DEPTH {
                expected = json!({"a": expected});
            }
            assert_eq!(read(&nested(levels)).expect("JSON"), expected, "{levels}");
        }
        let managed = format!(r#"{{"metadata": {{"managedFields": [{}]}}}}"#, nested(300));
        assert_eq!(read(&managed).expect("JSON"), json!({"metadata": {}}));
        let object = format!(
            r#"{{"a": {}, "metadata": {{"name": "b", "managedFields": [{}]}}}}"#,
            nested(300),
            nested(300)
        );
        let metadata: RawMetadata<'_> = serde_json::from_str(&object).expect("JSON");
        assert_eq!(metadata.into_tree().to_value(), json!({"name": "b"}));
    }

    #[test]
    fn values_that_are_not_objects_are_parsed_unchanged() {
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
    fn a_tree_returns_the_value_at_a_path() {
        let text = r#"{"spec": {"b": {"c": [1, {"d": -2.5}], "e": "}"}, "a": null}, "more": [[]],
            "metadata": {"annotations": {"x.y/z": "th\u0065re"}}, "spec": {"twice": 18446744073709551615}}"#;
        let raw: &RawValue = serde_json::from_str(text).expect("JSON");
        let RawObject(tree) = RawObject::parse(raw).expect("JSON");
        let get = |names: &[&str]| tree.get(names.iter().copied()).map(Tree::to_value);
        assert_eq!(get(&["spec", "twice"]), Some(json!(u64::MAX)));
        assert_eq!(
            get(&["metadata", "annotations", "x.y/z"]),
            Some(json!("there"))
        );
        for nothing in [["spec", "a"], ["spec", "b"], ["more", "a"], ["none", "a"]] {
            assert_eq!(get(&nothing), None);
        }
        let plain: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(tree.to_value(), plain);
        assert!(tree.has(["spec", "twice"]) && !tree.has(["spec", "b"]));
    }

    #[test]
    fn a_type_deserializes_from_a_tree_as_from_its_text() {
        #[derive(Debug, PartialEq, Deserialize)]
        enum Choice {
            Plain,
            New(u8),
            Pair(u8, String),
            Fields { a: Option<bool> },
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Wrapped(i64);
        #[derive(Debug, PartialEq, Deserialize)]
        struct All {
            choices: Vec<Choice>,
            wrapped: Wrapped,
            pair: (f64, Option<char>),
            map: std::collections::BTreeMap<String, u64>,
        }
        let texts = [
            r#"{"choices": ["Plain", {"New": 1}, {"Pair": [2, "b\n"]}, {"Fields": {"a": null, "b": [{}]}}],
                "wrapped": -7, "pair": [1.5, "c"], "map": {"d": 18446744073709551615}, "more": {"e": 1}}"#,
            r#"{"choices": ["None"], "wrapped": -7, "pair": [1.5, "c"], "map": {}}"#,
            r#"{"choices": [{"New": 1, "Plain": 2}], "wrapped": -7, "pair": [1.5, "c"], "map": {}}"#,
            r#"{"choices": [7], "wrapped": -7, "pair": [1.5, "c"], "map": {}}"#,
            r#"{"choices": [], "wrapped": -7.5, "pair": [1.5, "c"], "map": {}}"#,
            r#"{"choices": [], "wrapped": 1, "pair": [1.5, "c", 1], "map": {}}"#,
            r#"{"choices": [], "wrapped": 1, "wrapped": 2, "pair": [1.5, "c"], "map": {}}"#,
            r#"{"choices": [], "pair": [1.5, "c"], "map": {}}"#,
        ];
        for (index, text) in texts.into_iter().enumerate() {
            let raw: &RawValue = serde_json::from_str(text).expect("JSON");
            let RawObject(tree) = RawObject::parse(raw).expect("JSON");
            let from_tree = All::deserialize(&tree).ok();
            assert_eq!(from_tree, serde_json::from_str(text).ok(), "{text}");
            assert_eq!(from_tree.is_some(), index == 0, "{text}");
        }
    }

    #[test]
    fn values_that_are_not_objects_are_trees_as_well() {
        for text in ["null", "[1]", r#""a""#, "-0.5"] {
            let raw: &RawValue = serde_json::from_str(text).expect("JSON");
            let RawObject(tree) = RawObject::parse(raw).expect("JSON");
            let plain: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(tree.to_value(), plain);
            assert!(tree.get(["a"]).is_none());
        }
    }
}
