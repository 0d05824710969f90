//! A YAML or JSON document with the source location of each field.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use crate::check::diagnostic::{ParseError, SourceLocation};
use crate::check::yaml::node::{Located, Node, Span};
use crate::check::yaml::parser::MAX_VALUES;
use crate::check::yaml::spans::{locate, locate_entry, source_location, value_at};
use crate::check::yaml::split::DocumentPart;
use crate::check::yaml::{embedded_spans, parser, split};

const MAX_DOCUMENTS: usize = 100_000;
/// Stack size that the maximum nesting depth needs in a build without optimization.
const DEEP_BYTES: usize = 6 << 20;

/// One document of a file, or one item of a list of objects.
#[derive(Clone)]
pub(crate) struct Document {
    root: Located,
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
        match parse_part(part, text, &mut values_left) {
            Ok(read) => documents.extend(read.into_iter().map(Ok)),
            Err(problem) => documents.push(Err(problem)),
        }
    }
    documents
}

/// Returns a panic of the parser as an error: a file must not end a program that reads it, such as the webhook its policy.
fn without_panic<T>(parse: impl FnOnce() -> Result<T, ParseError>) -> Result<T, ParseError> {
    catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|_| {
        Err(ParseError {
            location: None,
            message: "cannot be read: the YAML parser failed".to_owned(),
        })
    })
}

/// Reads one document. Returns no document if there are only comments, and several if one ends with `...`.
fn parse_part(
    part: DocumentPart,
    text: &str,
    values_left: &mut usize,
) -> Result<Vec<Document>, ParseError> {
    let own = &text[part.start..part.end];
    let parsed = without_panic(|| parser::parse(own, values_left));
    let roots = parsed.map_err(|mut problem| {
        problem.location = problem.location.map(|location| part.shift(&location));
        problem
    })?;
    let documents = roots.into_iter().map(|root| Document { root, part });
    Ok(documents.collect())
}

impl Document {
    /// Returns the document as JSON.
    pub(crate) fn to_value(&self) -> Value {
        self.root.node.to_value()
    }

    /// Returns the items of a list of objects.
    pub(crate) fn items(&self) -> Vec<Self> {
        let Node::Map(fields) = &*self.root.node else {
            return Vec::new();
        };
        let items = fields.entries.iter().find(|entry| entry.name == "items");
        match items.map(|entry| &*entry.value.node) {
            Some(Node::List(items)) => items
                .iter()
                .map(|item| Self {
                    root: item.clone(),
                    part: self.part,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the location of a printed field path in the text that the document was read from. If the field does
    /// not exist, returns the location of its nearest ancestor.
    pub(crate) fn locate(&self, path: &str, text: &str) -> SourceLocation {
        self.location(locate(&self.root, path), text)
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
        let value = value_at(&self.root.node, path);
        let part =
            value.and_then(|value| embedded_spans::part(text, &location, value.as_str()?, bytes));
        part.unwrap_or(location)
    }

    /// Returns the location of a field's name, for errors about the name itself.
    pub(crate) fn locate_name(&self, path: &str, text: &str) -> SourceLocation {
        let found = locate_entry(&self.root.node, path);
        self.location(found.unwrap_or(self.root.at), text)
    }

    fn location(&self, span: Span, text: &str) -> SourceLocation {
        let own = &text[self.part.start..self.part.end];
        self.part.shift(&source_location(own, span))
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
    fn aliases_of_a_long_text_count_as_much_as_their_copies() {
        let aliases = vec!["*x"; 1_000].join(", ");
        let text = format!("a: &x {}\nb: [{aliases}]\n", "y".repeat(1 << 20));
        let problem = read_all(&text).err().expect("a gigabyte of text");
        assert!(problem.contains("more than 2000000 values"), "{problem}");
        let names = format!("a: &x {{{}: 1}}\nb: [{aliases}]\n", "y".repeat(1_000));
        let names = names.replace(": 1}", &format!(": {}}}", "z".repeat(1 << 20)));
        assert!(read_all(&names).is_err());
    }

    #[test]
    fn a_panic_of_the_parser_is_an_error_of_the_text() {
        let problem = without_panic::<()>(|| panic!("a fault of the parser")).err();
        let message = problem.map(|problem| problem.message);
        assert_eq!(
            message.as_deref(),
            Some("cannot be read: the YAML parser failed")
        );
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
