//! Deserialization of any type from a tree.

use std::borrow::Cow;

use serde::de::value::{
    BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer, SeqDeserializer,
};
use serde::de::{Deserializer, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use crate::json::raw::tree::Tree;

impl<'de> IntoDeserializer<'de, serde_json::Error> for &'de Tree<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Tree<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        match self {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(flag) => visitor.visit_bool(*flag),
            Tree::Number(number) => number.deserialize_any(visitor),
            Tree::Text(text) => visitor.visit_borrowed_str(text),
            Tree::List(items) => {
                let mut items = SeqDeserializer::new(items.iter());
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Tree::Object(fields) => {
                let mut fields = MapDeserializer::new(fields.iter().map(entry));
                let value = visitor.visit_map(&mut fields)?;
                fields.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        match self {
            Tree::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        match self {
            Tree::Text(variant) => visitor.visit_enum(BorrowedStrDeserializer::new(variant)),
            Tree::Object(fields) if fields.len() == 1 => {
                let fields = MapDeserializer::new(fields.iter().map(entry));
                MapAccessDeserializer::new(fields).deserialize_enum(name, variants, visitor)
            }
            _ => Err(serde::de::Error::invalid_type(
                Unexpected::Other("no variant"),
                &"a variant",
            )),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

fn entry<'t, 'a>((name, value): &'t (Cow<'_, str>, Tree<'a>)) -> (&'t str, &'t Tree<'a>) {
    (name, value)
}
