//! A YAML value with the source location of each value in it, and lookup by field path.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A YAML value.
pub(crate) enum Node {
    Scalar(Value),
    List(Vec<Rc<Spanned<Node>>>),
    Map(PathIndex),
}

impl Node {
    /// Returns the number of values in it, including itself.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::List(items) => 1 + items.iter().map(|item| item.value.count()).sum::<usize>(),
            Self::Map(fields) => {
                let below = fields.entries.iter().map(|(_, child)| child.value.count());
                1 + below.sum::<usize>()
            }
        }
    }
}

impl Node {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.value.to_value()).collect(),
            Self::Map(fields) => {
                let fields = fields
                    .entries
                    .iter()
                    .map(|(name, child)| (name.value.clone(), child.value.to_value()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("JSON has no such number"))?;
        Ok(Node::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(Rc::new(item));
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(PathIndex::of(entries)))
    }
}

/// Number of fields from which names are looked up in a hash map instead of compared one by one.
const MANY: usize = 16;

type Entry = (Spanned<String>, Spanned<Node>);

/// A mapping, with its fields in the order of the text.
pub(crate) struct PathIndex {
    pub(crate) entries: Vec<Entry>,
    by_name: OnceCell<HashMap<String, usize>>,
}

impl PathIndex {
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            by_name: OnceCell::new(),
        }
    }

    /// Returns the field at the beginning of a path, written `name` or `[name]`, and the rest of the path. A name
    /// can contain dots; the longest name that matches is used.
    pub(crate) fn find<'p>(
        &self,
        path: &'p str,
    ) -> Option<(&Spanned<String>, &Spanned<Node>, &'p str)> {
        let ends = ends(path);
        // A path with so many possible ends contains a malicious name; trying each end would be slow.
        if self.entries.len() < MANY || ends.len() > MANY {
            let fits = self.entries.iter().filter_map(|(name, child)| {
                let rest = rest(path, &name.value)?;
                Some((name, child, rest))
            });
            return fits.min_by_key(|(_, _, rest)| rest.len());
        }
        let by_name = self.by_name.get_or_init(|| {
            let names = self.entries.iter().enumerate();
            names
                .map(|(index, (name, _))| (name.value.clone(), index))
                .collect()
        });
        let found = ends.into_iter().rev().find_map(|end| {
            let name = match path.strip_prefix('[') {
                Some(_) => path[1..end].strip_suffix(']')?,
                None => &path[..end],
            };
            Some((by_name.get(name)?, &path[end..]))
        });
        let (index, rest) = found?;
        let (name, child) = &self.entries[*index];
        Some((name, child, rest))
    }
}

/// Returns the positions where a name at the beginning of a path can end.
fn ends(path: &str) -> Vec<usize> {
    let inner = path.match_indices(['.', '[']).map(|(at, _)| at);
    inner.filter(|at| *at > 0).chain([path.len()]).collect()
}

/// Returns the rest of a path after a name, or `None` if the path does not begin with the name.
fn rest<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let bracketed = || {
        path.strip_prefix('[')?
            .strip_prefix(name)?
            .strip_prefix(']')
    };
    let rest = path.strip_prefix(name).or_else(bracketed)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}
