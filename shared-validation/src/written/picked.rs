//! A few fields of a text, without reading the rest.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::Name;

/// Places in an object, as a tree of names.
#[derive(Default)]
pub(crate) struct Places {
    count: usize,
    root: Node,
}

#[derive(Default)]
struct Node {
    /// Which of the places it is.
    place: Option<usize>,
    below: BTreeMap<String, Node>,
}

impl Places {
    /// Places, each as the names of the fields that lead there. None of them lies within another one.
    pub(crate) fn of<'n>(places: impl IntoIterator<Item = Vec<&'n str>>) -> Self {
        let mut tree = Self::default();
        for names in places {
            let mut node = &mut tree.root;
            for name in names {
                node = node.below.entry(name.to_owned()).or_default();
            }
            node.place = Some(tree.count);
            tree.count += 1;
        }
        tree
    }

    pub(super) fn pick<'a>(&self, text: &'a str) -> serde_json::Result<Vec<Option<&'a RawValue>>> {
        let mut picked = vec![None; self.count];
        if text.starts_with('{') {
            let picking = Picking {
                node: &self.root,
                picked: &mut picked,
            };
            picking.deserialize(&mut serde_json::Deserializer::from_str(text))?;
        }
        Ok(picked)
    }
}

struct Picking<'p, 'a> {
    node: &'p Node,
    picked: &'p mut Vec<Option<&'a RawValue>>,
}

impl<'a> DeserializeSeed<'a> for Picking<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Picking<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(Name)? {
            let name: Cow<'_, str> = name;
            match self.node.below.get(name.as_ref()) {
                Some(Node {
                    place: Some(place), ..
                }) => self.picked[*place] = Some(map.next_value()?),
                Some(node) => map.next_value_seed(Picking {
                    node,
                    picked: self.picked,
                })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'a>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
