//! Source locations of fields.

use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use crate::check::diagnostic::SourceLocation;
use crate::check::yaml::node::Node;

/// Returns the source text of a scalar, including its quotes.
pub(crate) fn written(location: Location, text: &str) -> Option<&str> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    text.get(start..start.checked_add(length)?)
}

/// Converts a location of the parser to a [`SourceLocation`] in the parsed text.
pub(crate) fn of_location(text: &str, location: Location) -> SourceLocation {
    let span = location.span();
    let start = span
        .byte_offset()
        .and_then(|at| usize::try_from(at).ok())
        // The scanner's own errors have a line and a column, and the offset 0.
        .filter(|at| *at > 0 || location.line() <= 1)
        .unwrap_or_else(|| offset_of(text, location))
        .min(text.len());
    let length = span
        .byte_len()
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or_default();
    let end = start.saturating_add(length).min(text.len());
    // The text of a scalar or of a field's name. If it spans several lines, only the first one.
    let first = text
        .get(start..end)
        .and_then(|text| text.lines().next())
        .map_or(0, |line| line.trim_end().len());
    SourceLocation {
        line: location.line().max(1),
        column: location.column().max(1),
        span: start..start + first,
    }
}

/// Computes the byte offset of a location from its line and column.
fn offset_of(text: &str, location: Location) -> usize {
    let lines = usize::try_from(location.line()).unwrap_or(usize::MAX);
    let columns = usize::try_from(location.column()).unwrap_or(usize::MAX);
    let mut rest = text.split_inclusive('\n');
    let before = rest.by_ref().take(lines.saturating_sub(1));
    let start: usize = before.map(str::len).sum();
    let line = rest.next().unwrap_or_default();
    let within = line.chars().take(columns.saturating_sub(1));
    start + within.map(char::len_utf8).sum::<usize>()
}

/// Returns the location of the name of the field at the end of a path.
pub(crate) fn locate_entry(node: &Spanned<Node>, path: &str) -> Option<Location> {
    let path = path.strip_prefix('.').unwrap_or(path);
    match &node.value {
        Node::Map(fields) => match fields.find(path)? {
            (name, _, "") => Some(name.referenced),
            (_, child, rest) => locate_entry(child, rest),
        },
        Node::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            locate_entry(items.get(index.parse::<usize>().ok()?)?, rest)
        }
        Node::Scalar(_) => None,
    }
}

/// Returns the scalar at a path.
pub(crate) fn value_at<'a>(node: &'a Spanned<Node>, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    match &node.value {
        Node::Scalar(value) => path.is_empty().then_some(value),
        Node::Map(fields) => {
            let (_, child, rest) = fields.find(path)?;
            value_at(child, rest)
        }
        Node::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            value_at(items.get(index.parse::<usize>().ok()?)?, rest)
        }
    }
}

/// Returns the location of a path below a node, or of its nearest ancestor if the path does not exist.
pub(crate) fn locate(node: &Spanned<Node>, node_location: Location, path: &str) -> Location {
    let path = path.strip_prefix('.').unwrap_or(path);
    match &node.value {
        _ if path.is_empty() => node_location,
        Node::Map(fields) => match fields.find(path) {
            Some((name, child, "")) => match child.value {
                Node::Scalar(_) => child.referenced,
                _ => name.referenced,
            },
            Some((name, child, rest)) => locate(child, name.referenced, rest),
            None => node_location,
        },
        Node::List(items) => {
            let index = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let item = index
                .and_then(|(index, rest)| Some((items.get(index.parse::<usize>().ok()?)?, rest)));
            item.map_or(node_location, |(item, rest)| {
                locate(item, item.referenced, rest)
            })
        }
        Node::Scalar(_) => node_location,
    }
}
