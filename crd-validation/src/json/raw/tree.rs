//! JSON tree that borrows from the parsed text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Number, Value};

/// JSON value that borrows strings from its text.
#[derive(Debug, PartialEq)]
pub enum Tree<'a> {
    /// `null`.
    Null,
    /// Boolean.
    Bool(bool),
    /// Number.
    Number(Number),
    /// String.
    Text(Cow<'a, str>),
    /// Array.
    List(Vec<Tree<'a>>),
    /// Fields in the order of the text. If several have the same name, the last one counts, as for the API
    /// server.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

impl Tree<'_> {
    /// Returns the value at a path, or `None` if it is null or absent.
    #[must_use]
    pub fn get<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<&Self> {
        let mut names = names.into_iter();
        let found = names.try_fold(self, Self::field)?;
        (*found != Self::Null).then_some(found)
    }

    /// Returns a field of an object.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let own = fields.iter().rfind(|(own, _)| own == name);
        own.map(|(_, value)| value)
    }

    /// Returns a field of an object, to change it.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let own = fields.iter_mut().rfind(|(own, _)| own == name);
        own.map(|(_, value)| value)
    }

    /// Removes a field of an object, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Self> {
        let Self::Object(fields) = self else {
            return None;
        };
        let removed = fields.extract_if(.., |(own, _)| own == name).last();
        removed.map(|(_, value)| value)
    }

    /// Returns the text of a string.
    #[must_use]
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// Returns a copy as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.as_ref().to_owned()),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                let fields = fields.iter();
                fields
                    .map(|(name, value)| (name.as_ref(), value.to_value()))
                    .collect()
            }
        }
    }

    /// Returns true if the path exists, even if its value is null.
    #[must_use]
    pub fn has<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let mut names = names.into_iter();
        names.try_fold(self, Self::field).is_some()
    }
}

/// Largest number of maps and lists around a value that is read. An object may be nested thousands of levels deep, and the
/// stack of a thread is finite. The parser of `serde_json` allows 128, and an object is at least two levels below a review.
pub const MAX_DEPTH: usize = 100;

/// Parser that skips `metadata.managedFields` of an object: no rule reads it, and it is often the larger part. What is
/// deeper than [`MAX_DEPTH`] is skipped as well, and null in its place.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    place: Place,
    /// Number of maps and lists around the value.
    depth: usize,
}

/// Place of a value in an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Metadata,
    Below,
}

impl Reader {
    /// Parser of a whole object.
    pub(crate) const OBJECT: Self = Self {
        place: Place::Object,
        depth: 0,
    };
    /// Parser of a whole value, managed fields included.
    const VALUE: Self = Self {
        place: Place::Below,
        depth: 0,
    };
    /// Parser of the metadata of an object.
    pub(crate) const METADATA: Self = Self {
        place: Place::Metadata,
        depth: 1,
    };

    fn below(self, place: Place) -> Self {
        Self {
            place,
            depth: self.depth + 1,
        }
    }
}

/// Reads a value. What is nested in more than [`MAX_DEPTH`] maps and lists is null.
impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Reader::VALUE.deserialize(deserializer)
    }
}

impl<'de> DeserializeSeed<'de> for Reader {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'de>, D::Error> {
        if self.depth > MAX_DEPTH {
            // Skipping does not recurse.
            IgnoredAny::deserialize(deserializer)?;
            return Ok(Tree::Null);
        }
        deserializer.deserialize_any(self)
    }
}

/// Initial capacity, sufficient for most objects.
const FIELDS: usize = 8;

impl<'de> Visitor<'de> for Reader {
    type Value = Tree<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key_seed(Name)? {
            if fields.is_empty() {
                fields.reserve(FIELDS);
            }
            if self.place == Place::Metadata && name == "managedFields" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let place = match (self.place, name.as_ref()) {
                (Place::Object, "metadata") => Place::Metadata,
                _ => Place::Below,
            };
            fields.push((name, map.next_value_seed(self.below(place))?));
        }
        Ok(Tree::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below(Place::Below))? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Tree<'de>, E> {
        let number = Number::from_f64(number);
        number
            .map(Tree::Number)
            .ok_or_else(|| E::custom("JSON has finite numbers only"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }
}

/// Field name, borrowed if it contains no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
