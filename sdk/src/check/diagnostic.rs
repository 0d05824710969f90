//! Results of the check: errors and warnings with their source locations.

use std::ops::Range;

use lockstep_shared_validation::{FieldError, Layer};

/// The results for one source.
pub(crate) struct FileReport {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) documents: Vec<CheckedDocument>,
    /// Documents and objects that cannot be read or validated, with the reason.
    pub(crate) problems: Vec<ParseError>,
    /// Number of objects of unknown kinds.
    pub(crate) skipped: usize,
}

/// An input that cannot be validated at all.
pub(crate) struct ParseError {
    pub(crate) location: Option<SourceLocation>,
    pub(crate) message: String,
}

/// One validated object.
pub(crate) struct CheckedDocument {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Diff between the object as written and as the cluster would store it.
    pub(crate) diff: Option<String>,
}

impl CheckedDocument {
    pub(crate) fn is_valid(&self) -> bool {
        self.diagnostics
            .iter()
            .all(|finding| finding.level != Level::Error)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warning,
    /// A violation that a policy only audits.
    Audit,
}

/// One violation, with its location in the text.
pub(crate) struct Diagnostic {
    pub(crate) level: Level,
    pub(crate) rule: String,
    pub(crate) layer: Layer,
    pub(crate) error: FieldError,
    pub(crate) location: SourceLocation,
}

impl Diagnostic {
    /// Returns the message with its hints on one line.
    pub(crate) fn message(&self) -> String {
        let hints = self.hints();
        let parts: Vec<_> = std::iter::once(self.headline()).chain(hints).collect();
        parts.join("; ")
    }

    /// Returns the hints, each on one line.
    pub(crate) fn hints(&self) -> impl Iterator<Item = String> {
        self.error.hints.iter().map(|hint| on_one_line(hint))
    }

    /// Returns the message on one line, without hints and without the rule id at its end, if any. An excerpt of a VRL
    /// program below it is left out, because the source text itself is shown.
    pub(crate) fn headline(&self) -> String {
        let mut error = self.error.clone();
        if error.span.is_some()
            && let Some((first, _)) = error.detail.split_once('\n')
        {
            error.detail = first.to_owned();
        }
        let message = error.to_string();
        let id = format!(" [{}]", self.rule);
        let message = message.strip_suffix(&id).unwrap_or(&message);
        on_one_line(message)
    }
}

/// Location in a text. Line and column are counted from one; the span is in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) span: Range<usize>,
}

/// Escapes all control characters, which could move the cursor of a terminal: field names are arbitrary input.
///
/// ```
/// assert_eq!(lockstep_sdk::on_one_line("a\nb"), "a\\nb");
/// ```
pub fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
