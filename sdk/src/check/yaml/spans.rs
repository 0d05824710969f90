//! Source locations of fields.

use serde_json::Value;

use crate::check::diagnostic::SourceLocation;
use crate::check::yaml::node::{Located, Node, Span};

/// Converts a range of the parsed text to a [`SourceLocation`]. Of a text on several lines, it is the first one.
pub(crate) fn source_location(text: &str, span: Span) -> SourceLocation {
    let first = text
        .get(span.start..span.end)
        .and_then(|text| text.lines().next())
        .map_or(0, |line| line.trim_end().len());
    let before = text.get(..span.start).unwrap_or_default();
    let start_of_line = before.rfind('\n').map_or(0, |newline| newline + 1);
    SourceLocation {
        line: span.line,
        column: before[start_of_line..].chars().count() as u64 + 1,
        span: span.start..span.start + first,
    }
}

/// Returns the range of the name of the field at the end of a path.
pub(crate) fn locate_entry(node: &Node, path: &str) -> Option<Span> {
    let path = path.strip_prefix('.').unwrap_or(path);
    match node {
        Node::Map(fields) => match fields.find(path)? {
            (entry, "") => Some(entry.at),
            (entry, rest) => locate_entry(&entry.value.node, rest),
        },
        Node::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            locate_entry(&items.get(index.parse::<usize>().ok()?)?.node, rest)
        }
        Node::Scalar(_) => None,
    }
}

/// Returns the scalar at a path.
pub(crate) fn value_at<'a>(node: &'a Node, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    match node {
        Node::Scalar(value) => path.is_empty().then_some(value),
        Node::Map(fields) => {
            let (entry, rest) = fields.find(path)?;
            value_at(&entry.value.node, rest)
        }
        Node::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            value_at(&items.get(index.parse::<usize>().ok()?)?.node, rest)
        }
    }
}

/// Returns the range of a path below a value, or of its nearest ancestor if the path does not exist.
pub(crate) fn locate(located: &Located, path: &str) -> Span {
    locate_below(&located.node, located.at, path)
}

fn locate_below(node: &Node, at: Span, path: &str) -> Span {
    let path = path.strip_prefix('.').unwrap_or(path);
    match node {
        _ if path.is_empty() => at,
        Node::Map(fields) => match fields.find(path) {
            Some((entry, "")) => match *entry.value.node {
                Node::Scalar(_) => entry.value.at,
                _ => entry.at,
            },
            Some((entry, rest)) => locate_below(&entry.value.node, entry.at, rest),
            None => at,
        },
        Node::List(items) => {
            let index = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let item = index
                .and_then(|(index, rest)| Some((items.get(index.parse::<usize>().ok()?)?, rest)));
            item.map_or(at, |(item, rest)| locate_below(&item.node, item.at, rest))
        }
        Node::Scalar(_) => at,
    }
}
