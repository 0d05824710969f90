//! Text → documents, separated before parsing, so that one that cannot be read does not hide the others.

use serde::de::IgnoredAny;

use crate::check::diagnostic::SourceLocation;

/// Range of a document in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPart {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Number of lines before it.
    lines_before: u64,
    /// Number of characters before it on its first line.
    columns_before: u64,
}

impl DocumentPart {
    /// Returns the part after this one. `own` is the text of this part. The end of the next part is not known yet.
    fn next(self, own: &str) -> Self {
        let (lines, columns) = match own.rfind('\n') {
            Some(at) => (own.matches('\n').count(), own[at + 1..].chars().count()),
            None => (0, own.chars().count()),
        };
        Self {
            start: self.end,
            end: self.end,
            lines_before: self.lines_before + lines as u64,
            columns_before: columns as u64 + if lines == 0 { self.columns_before } else { 0 },
        }
    }

    /// Converts a location within the part to a location within the text.
    pub(crate) fn shift(self, location: &SourceLocation) -> SourceLocation {
        let on_first_line = location.line <= 1;
        SourceLocation {
            line: location.line + self.lines_before,
            column: location.column
                + if on_first_line {
                    self.columns_before
                } else {
                    0
                },
            span: location.span.start + self.start..location.span.end + self.start,
        }
    }
}

/// Returns the documents of a text. They are separated by lines that begin with `---`, or are JSON values one
/// after another.
pub(crate) fn of(text: &str) -> Vec<DocumentPart> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut lines_before = 0;
    let mut at = 0;
    for (line, content) in (0..).zip(text.split_inclusive('\n')) {
        if is_separator(content) && !is_preamble(&text[start..at]) {
            add(text, start, at, lines_before, &mut parts);
            (start, lines_before) = (at, line);
        }
        at += content.len();
    }
    add(text, start, at, lines_before, &mut parts);
    parts
}

/// Returns true if the text has only blank lines, comments and directives. A document's directives come before its
/// separator.
fn is_preamble(text: &str) -> bool {
    text.lines()
        .all(|line| line.trim().is_empty() || line.starts_with(['#', '%']))
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn add(text: &str, start: usize, end: usize, lines_before: u64, parts: &mut Vec<DocumentPart>) {
    let own = &text[start..end];
    let content = own.strip_prefix("---").unwrap_or(own);
    let whole = DocumentPart {
        start,
        end,
        lines_before,
        columns_before: 0,
    };
    if !content.trim_start().starts_with('{') {
        return parts.push(whole);
    }
    // The separator belongs to the first value.
    let mut values = serde_json::Deserializer::from_str(content).into_iter::<IgnoredAny>();
    let base = end - content.len();
    let mut found = Vec::new();
    let mut part = whole;
    while let Some(Ok(_)) = values.next() {
        part.end = base + values.byte_offset();
        found.push(part);
        part = part.next(&text[part.start..part.end]);
    }
    // A single JSON value, or YAML that only begins like JSON.
    if found.len() < 2 || !text[part.start..end].trim().is_empty() {
        found = vec![whole];
    }
    parts.append(&mut found);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        of(text)
            .iter()
            .map(|part| &text[part.start..part.end])
            .collect()
    }

    #[test]
    fn documents_end_at_a_separator_line_or_after_a_json_value() {
        assert_eq!(
            texts("a: 1\n---\nb: |\n  ---\n---x: 1\n"),
            ["a: 1\n", "---\nb: |\n  ---\n---x: 1\n"]
        );
        assert_eq!(
            texts("{\"a\": 1}\n{\"b\": 2}\n"),
            ["{\"a\": 1}", "\n{\"b\": 2}"]
        );
        assert_eq!(
            texts("--- {a: 1}\n--- {b: 2}"),
            ["--- {a: 1}\n", "--- {b: 2}"]
        );
        for (text, part, line, column, expected) in [
            ("{\"a\": 1} {\"b\": 2}", 1, 1, 2, (1, 10, 9..10)),
            (
                "{\"a\":\n 1} {\"b\": 2} {\"c\": 3}",
                2,
                1,
                3,
                (2, 15, 20..21),
            ),
        ] {
            let span = column - 1..column;
            let column = column as u64;
            let location = of(text)[part].shift(&SourceLocation { line, column, span });
            assert_eq!(
                (location.line, location.column, location.span),
                expected,
                "{text}"
            );
        }
    }
}
