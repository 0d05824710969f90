//! A YAML or JSON document with the source location of each field.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Location, Spanned};

use crate::check::diagnostic::{ParseError, SourceLocation};
use crate::check::yaml::embedded_spans;
use crate::check::yaml::node::Node;
use crate::check::yaml::spans::{locate, locate_entry, of_location, value_at, written};
use crate::check::yaml::split;
use crate::check::yaml::split::DocumentPart;
use crate::check::yaml::yaml11_scalar;

const MAX_DOCUMENTS: usize = 100_000;
const MAX_VALUES: usize = 2_000_000;
/// Maximum nesting depth, as in the JSON reader.
const MAX_DEPTH: usize = 127;
/// Stack size that this depth needs in a build without optimization.
const DEEP_BYTES: usize = 6 << 20;

/// One document of a file, or one item of a list of objects.
#[derive(Clone)]
pub(crate) struct Document {
    root: Rc<Spanned<Node>>,
    part: DocumentPart,
}

/// Reads every document of a text. A document that cannot be read does not hide the others.
pub(crate) fn read(text: &str) -> Vec<Result<Document, ParseError>> {
    stacker::maybe_grow(DEEP_BYTES, 4 * DEEP_BYTES, || parse_here(text))
}

/// Reads every document of a text. Fails if one of them cannot be read.
pub(crate) fn read_all(text: &str) -> Result<Vec<Document>, String> {
    let describe = |problem: ParseError| match problem.location {
        Some(SourceLocation { line, column, .. }) => {
            format!("{line}:{column}: {}", problem.message)
        }
        None => problem.message,
    };
    let documents: Result<Vec<_>, _> = read(text).into_iter().collect();
    documents.map_err(describe)
}

fn parse_here(text: &str) -> Vec<Result<Document, ParseError>> {
    let parts = split::of(text);
    if parts.len() > MAX_DOCUMENTS {
        return vec![Err(ParseError {
            location: None,
            message: format!("cannot be read: more than {MAX_DOCUMENTS} documents; split the file"),
        })];
    }
    let mut values_left = MAX_VALUES;
    let mut documents = Vec::new();
    for part in parts {
        match parse_part(part, text, values_left) {
            Ok(read) => {
                let values = read.iter().map(|document| document.root.value.count());
                values_left = values_left.saturating_sub(values.sum());
                documents.extend(read.into_iter().map(Ok));
            }
            Err(problem) => documents.push(Err(problem)),
        }
    }
    documents
}

/// Reads one document. Returns no document if there are only comments, and several if one ends with `...`.
fn parse_part(
    part: DocumentPart,
    text: &str,
    most_values: usize,
) -> Result<Vec<Document>, ParseError> {
    let own = &text[part.start..part.end];
    let shifted = |mut problem: ParseError| {
        problem.location = problem.location.map(|location| part.shift(&location));
        problem
    };
    // A text without separators can still fail here, for example if it is indented with tabs, which YAML does not
    // allow.
    let roots: Vec<Spanned<Node>> =
        serde_saphyr::from_multiple_with_options(own, limits(most_values))
            .map_err(|error| shifted(parse_error(own, &error)))?;
    let document = |mut root: Spanned<Node>| {
        resolve(&mut root, own).map_err(shifted)?;
        Ok(Document {
            root: Rc::new(root),
            part,
        })
    };
    roots.into_iter().map(document).collect()
}

/// Returns the parser's limits for one file: above the size of any real file, and below what memory can hold.
fn limits(most_values: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: most_values,
            max_events: 4 * most_values + 16,
            max_recorded_anchor_events: 4 * MAX_VALUES,
            max_depth: MAX_DEPTH,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: most_values,
        },
    }
}

/// Resolves every scalar as `kubectl` does.
fn resolve(node: &mut Spanned<Node>, text: &str) -> Result<(), ParseError> {
    match &mut node.value {
        Node::Scalar(value) => {
            if let Some(written) = written(node.defined, text) {
                *value = yaml11_scalar::resolved(value.take(), written);
            }
            Ok(())
        }
        // No other reference to an item exists yet.
        Node::List(items) => items
            .iter_mut()
            .filter_map(Rc::get_mut)
            .try_for_each(|item| resolve(item, text)),
        Node::Map(fields) => {
            for (name, child) in &mut fields.entries {
                if let Some(written) = written(name.defined, text) {
                    name.value =
                        yaml11_scalar::resolved_name(std::mem::take(&mut name.value), written);
                }
                resolve(child, text)?;
            }
            distinct(&fields.entries, text)
        }
    }
}

/// Rejects names that are equal only after resolution: `1` and `"1"`, `yes` and `true`.
fn distinct(entries: &[(Spanned<String>, Spanned<Node>)], text: &str) -> Result<(), ParseError> {
    let mut seen = HashSet::new();
    let repeated = entries.iter().find(|(name, _)| {
        yaml11_scalar::may_be_written_otherwise(&name.value) && !seen.insert(&name.value)
    });
    repeated.map_or(Ok(()), |(name, _)| {
        Err(ParseError {
            location: Some(of_location(text, name.referenced)),
            message: format!("cannot be read: duplicate mapping key: {}", name.value),
        })
    })
}

/// Returns the limit that a text exceeds. For an error within an alias, only the text of the error names it.
fn limit(error: &serde_saphyr::Error) -> Option<String> {
    let error = error.without_snippet();
    if let serde_saphyr::Error::Budget {
        breach: BudgetBreach::Depth { .. },
        ..
    } = error
    {
        return Some(format!("nested deeper than {MAX_DEPTH} levels"));
    }
    let text = error.to_string();
    if text.contains("budget breached") || text.contains("alias replay limit exceeded") {
        return Some(format!(
            "more than {MAX_VALUES} values, with its aliases expanded; split the file"
        ));
    }
    text.contains("non-finite float")
        .then(|| "JSON has no such number; write a finite one".to_owned())
}

/// Describes an error of the YAML parser for the author of the text, with its line and column. Advice about the
/// settings of the parser is left out.
#[must_use]
pub fn describe_yaml_error(text: &str, error: &serde_saphyr::Error) -> String {
    let ParseError { location, message } = parse_error(text, error);
    let location = location.map(|at| format!("line {}, column {}: ", at.line, at.column));
    format!("{}the YAML {message}", location.unwrap_or_default())
}

fn parse_error(text: &str, error: &serde_saphyr::Error) -> ParseError {
    let location = error.location().map(|location| of_location(text, location));
    let message = error.without_snippet().to_string();
    // The location is printed before the message. Advice about parser settings does not help the author of the
    // YAML.
    let message = message.lines().next().unwrap_or_default();
    let message = message.split(" at line ").next().unwrap_or_default();
    let limit = limit(error);
    let message = match (&limit, message.split_once(", set ")) {
        (Some(limit), _) => limit,
        (None, Some((message, _))) => message,
        (None, None) => message,
    };
    let line = location.as_ref().and_then(|location| {
        text.lines()
            .nth(usize::try_from(location.line).ok()?.checked_sub(1)?)
    });
    let hint = match line {
        Some(line) if line.trim_start_matches(' ').starts_with('\t') => {
            "; YAML does not allow tabs for indentation: use spaces"
        }
        _ => "",
    };
    ParseError {
        location,
        message: format!("cannot be read: {message}{hint}"),
    }
}

impl Document {
    /// Returns the document as JSON.
    pub(crate) fn to_value(&self) -> Value {
        self.root.value.to_value()
    }

    /// Returns the items of a list of objects.
    pub(crate) fn items(&self) -> Vec<Self> {
        let Node::Map(fields) = &self.root.value else {
            return Vec::new();
        };
        let items = fields
            .entries
            .iter()
            .find(|(name, _)| name.value == "items");
        match items.map(|(_, items)| &items.value) {
            Some(Node::List(items)) => items
                .iter()
                .map(|item| Self {
                    root: Rc::clone(item),
                    part: self.part,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the location of a printed field path in the text that the document was read from. If the field does
    /// not exist, returns the location of its nearest ancestor.
    pub(crate) fn locate(&self, path: &str, text: &str) -> SourceLocation {
        self.location(locate(&self.root, self.root.referenced, path), text)
    }

    /// Returns the location of some bytes of a string field, or of the whole field if the document does not
    /// contain its value literally.
    pub(crate) fn locate_span(
        &self,
        path: &str,
        bytes: &Range<usize>,
        text: &str,
    ) -> SourceLocation {
        let location = self.locate(path, text);
        let value = value_at(&self.root, path);
        let part =
            value.and_then(|value| embedded_spans::part(text, &location, value.as_str()?, bytes));
        part.unwrap_or(location)
    }

    /// Returns the location of a field's name, for errors about the name itself.
    pub(crate) fn locate_name(&self, path: &str, text: &str) -> SourceLocation {
        let found = locate_entry(&self.root, path);
        self.location(found.unwrap_or(self.root.referenced), text)
    }

    fn location(&self, location: Location, text: &str) -> SourceLocation {
        let own = &text[self.part.start..self.part.end];
        self.part.shift(&of_location(own, location))
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
    fn an_error_of_the_scanner_is_located_in_its_own_line() {
        let text = "sinks:\n  ä: 1\nsources:\n\tsources: {}\n";
        let Some(Err(error)) = read(text).into_iter().next() else {
            panic!("the tab is accepted");
        };
        let location = error.location.expect("the error has a location");
        assert_eq!(location.line, 4);
        let lines_before = text[..location.span.start].matches('\n').count();
        assert_eq!(lines_before, 3, "{location:?}");
        // The same after another document.
        let text = format!("a: 1\n---\n{text}");
        let error = read(&text).into_iter().find_map(Result::err);
        let location = error.and_then(|error| error.location);
        let location = location.expect("the error has a location");
        assert_eq!(location.line, 6);
        let lines_before = text[..location.span.start].matches('\n').count();
        assert_eq!(lines_before, 5, "{location:?}");
    }

    #[test]
    fn documents_are_read_as_json_with_source_locations() {
        let documents = read_all(TEXT).expect("two documents");
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
        for text in ["a: 1\na: 2\n", "\"1\": a\n1: b\n", "yes: a\n'true': b\n"] {
            let problem = read_all(text).err().expect("it is rejected");
            assert!(problem.contains("duplicate"), "{text}: {problem}");
        }
    }

    #[test]
    fn a_document_that_cannot_be_read_does_not_hide_the_others() {
        let text = "a: 1\n---\nb: 1\nb: 2\n---\n# nothing\n---\nc: {d: x}\n";
        let read = read(text);
        let errors: Vec<_> = read
            .iter()
            .map(|document| match document {
                Ok(document) => document.to_value().to_string(),
                Err(ParseError { location, message }) => {
                    let line = location.as_ref().map_or(0, |location| location.line);
                    format!("{line}: {message}")
                }
            })
            .collect();
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(
            errors[1].starts_with("4: cannot be read: duplicate"),
            "{errors:?}"
        );
        let last = read[2].as_ref().ok().expect("it is read");
        let location = last.locate("c.d", text);
        assert_eq!((location.line, location.column), (8, 8));
        assert_eq!(&text[location.span], "x");
    }

    #[test]
    fn a_text_may_contain_several_json_values() {
        let text = "{\"a\": 1}\n{\"b\":\n  2}";
        let read = read_all(text).expect("two documents");
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].locate("b", text).line, 3);
    }

    #[test]
    fn the_error_names_the_exceeded_limit() {
        let problem = |text: String| read_all(&text).err().expect("it is rejected");
        let documents = problem("---\na: 1\n".repeat(100_001));
        assert!(documents.contains("100000 documents"), "{documents}");
        let deep = problem(format!("{}1{}", "[".repeat(200), "]".repeat(200)));
        assert!(deep.contains("127 levels"), "{deep}");
        let many = read_all(&"---\na: 1\n".repeat(5_000));
        assert_eq!(many.map(|documents| documents.len()), Ok(5_000));
    }
}
