//! A YAML or JSON document that still knows where each field stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// A place in a file, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// One document of a file.
pub(crate) struct Document {
    root: Spanned<Node>,
}

/// Reads every document of a text.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, String> {
    let roots: Vec<Spanned<Node>> =
        serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    Ok(roots.into_iter().map(|root| Document { root }).collect())
}

enum Node {
    Scalar(Value),
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Document {
    /// The document as JSON.
    pub(crate) fn to_value(&self) -> Value {
        self.root.value.to_value()
    }

    /// Where a printed field path leads; for a field that is not there, its nearest ancestor.
    pub(crate) fn locate(&self, path: &str) -> Place {
        locate(&self.root, place(&self.root), path)
    }
}

fn locate(node: &Spanned<Node>, place_of_node: Place, path: &str) -> Place {
    let path = path.strip_prefix('.').unwrap_or(path);
    match &node.value {
        _ if path.is_empty() => place_of_node,
        Node::Map(entries) => {
            let found = entries.iter().filter_map(|(name, child)| {
                let bracketed = format!("[{}]", name.value);
                let rest = path
                    .strip_prefix(&name.value)
                    .or_else(|| path.strip_prefix(&bracketed))?;
                (rest.is_empty() || rest.starts_with(['.', '['])).then_some((name, child, rest))
            });
            // A name may hold dots itself: the longest one that fits is meant.
            match found.min_by_key(|(_, _, rest)| rest.len()) {
                Some((name, child, "")) => match child.value {
                    Node::Scalar(_) => place(child),
                    _ => place(name),
                },
                Some((name, child, rest)) => locate(child, place(name), rest),
                None => place_of_node,
            }
        }
        Node::List(items) => {
            let index = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let item = index
                .and_then(|(index, rest)| Some((items.get(index.parse::<usize>().ok()?)?, rest)));
            item.map_or(place_of_node, |(item, rest)| {
                locate(item, place(item), rest)
            })
        }
        Node::Scalar(_) => place_of_node,
    }
}

fn place<T>(spanned: &Spanned<T>) -> Place {
    Place {
        line: spanned.referenced.line(),
        column: spanned.referenced.column(),
    }
}

impl Node {
    fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(|item| item.value.to_value()).collect(),
            Self::Map(entries) => {
                let fields = entries
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
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# two documents
kind: A
spec:
  list:
    - name: x
      size: 1
  tags:
    a.b/c: v
---
{\"kind\": \"B\",
 \"spec\": {\"n\": 1.5, \"t\": true, \"z\": null}}
";

    #[test]
    fn documents_are_read_as_json_with_their_places() {
        let documents = read(TEXT).expect("readable");
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].to_value()["spec"]["list"][0]["size"], 1);
        assert_eq!(
            documents[1].to_value()["spec"],
            serde_json::json!({"n": 1.5, "t": true, "z": null})
        );
        let line = |path| documents[0].locate(path).line;
        assert_eq!(line("spec.list[0].size"), 6);
        assert_eq!(line("spec.tags[a.b/c]"), 8);
        assert_eq!(line("spec.tags.a.b/c"), 8);
        assert_eq!(line("spec.list[0].missing"), 5);
        assert_eq!(line("spec.engine"), 3);
        assert_eq!(documents[1].locate("spec.n").line, 11);
    }

    #[test]
    fn a_duplicate_key_is_an_error() {
        assert!(
            read("a: 1\na: 2\n")
                .err()
                .is_some_and(|error| error.contains('a'))
        );
    }
}
