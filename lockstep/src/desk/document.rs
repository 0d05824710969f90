//! A YAML or JSON document that still knows where each field stands.

use std::fmt;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use crate::desk::judge::{Place, Problem};

/// One document of a file, or one item of a list of objects.
#[derive(Clone)]
pub(crate) struct Document {
    root: Rc<Spanned<Node>>,
}

/// Reads every document of a text.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, Problem> {
    // One who never writes a separator may still indent with tabs, which YAML does not allow.
    let roots: Vec<Spanned<Node>> =
        serde_saphyr::from_multiple(text).map_err(|error| problem(text, &error))?;
    let document = |root| Document {
        root: Rc::new(root),
    };
    Ok(roots.into_iter().map(document).collect())
}

fn problem(text: &str, error: &serde_saphyr::Error) -> Problem {
    let place = error.location().map(|location| of_location(text, location));
    let message = error.without_snippet().to_string();
    // Where it is stands before the message; what a program could set is not for one who writes YAML.
    let message = message.lines().next().unwrap_or_default();
    let message = message.split(" at line ").next().unwrap_or_default();
    let message = match message.split_once(", set ") {
        _ if message.starts_with("budget breached") => {
            "larger than what is taken, with its aliases expanded"
        }
        Some((message, _)) => message,
        None => message,
    };
    let line = place.as_ref().and_then(|place| {
        text.lines()
            .nth(usize::try_from(place.line).ok()?.checked_sub(1)?)
    });
    let hint = match line {
        Some(line) if line.trim_start_matches(' ').starts_with('\t') => {
            "; YAML does not take tabs for indentation: use spaces"
        }
        _ => "",
    };
    Problem {
        place,
        message: format!("cannot be read: {message}{hint}"),
    }
}

enum Node {
    Scalar(Value),
    List(Vec<Rc<Spanned<Node>>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Document {
    /// The document as JSON.
    pub(crate) fn to_value(&self) -> Value {
        self.root.value.to_value()
    }

    /// The items of a list of objects.
    pub(crate) fn items(&self) -> Vec<Self> {
        let Node::Map(fields) = &self.root.value else {
            return Vec::new();
        };
        let items = fields.iter().find(|(name, _)| name.value == "items");
        match items.map(|(_, items)| &items.value) {
            Some(Node::List(items)) => items
                .iter()
                .map(|item| Self {
                    root: Rc::clone(item),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Where a printed field path leads in the text that the document was read from; for a field that
    /// is not there, its nearest ancestor.
    pub(crate) fn locate(&self, path: &str, text: &str) -> Place {
        of_location(text, locate(&self.root, self.root.referenced, path))
    }
}

fn of_location(text: &str, location: Location) -> Place {
    let span = location.span();
    let start = span
        .byte_offset()
        .and_then(|at| usize::try_from(at).ok())
        .unwrap_or_default()
        .min(text.len());
    let length = span
        .byte_len()
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or_default();
    let end = start.saturating_add(length).min(text.len());
    // The text of a scalar, or of a field's name; of anything that spans lines, the first one.
    let first = text
        .get(start..end)
        .and_then(|text| text.lines().next())
        .map_or(0, |line| line.trim_end().len());
    Place {
        line: location.line().max(1),
        column: location.column().max(1),
        span: start..start + first,
    }
}

fn locate(node: &Spanned<Node>, place_of_node: Location, path: &str) -> Location {
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
                    Node::Scalar(_) => child.referenced,
                    _ => name.referenced,
                },
                Some((name, child, rest)) => locate(child, name.referenced, rest),
                None => place_of_node,
            }
        }
        Node::List(items) => {
            let index = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let item = index
                .and_then(|(index, rest)| Some((items.get(index.parse::<usize>().ok()?)?, rest)));
            item.map_or(place_of_node, |(item, rest)| {
                locate(item, item.referenced, rest)
            })
        }
        Node::Scalar(_) => place_of_node,
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
            items.push(Rc::new(item));
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
        let documents = read(TEXT).unwrap_or_else(|problem| panic!("{}", problem.message));
        assert_eq!(documents.len(), 2);
        assert_eq!(documents[0].to_value()["spec"]["list"][0]["size"], 1);
        assert_eq!(
            documents[1].to_value()["spec"],
            serde_json::json!({"n": 1.5, "t": true, "z": null})
        );
        let line = |path| documents[0].locate(path, TEXT).line;
        assert_eq!(line("spec.list[0].size"), 6);
        assert_eq!(line("spec.tags[a.b/c]"), 8);
        assert_eq!(line("spec.tags.a.b/c"), 8);
        assert_eq!(line("spec.list[0].missing"), 5);
        assert_eq!(line("spec.engine"), 3);
        assert_eq!(documents[1].locate("spec.n", TEXT).line, 11);
    }

    #[test]
    fn a_duplicate_key_is_an_error() {
        assert!(
            read("a: 1\na: 2\n")
                .err()
                .is_some_and(|problem| problem.message.contains('a'))
        );
    }
}
