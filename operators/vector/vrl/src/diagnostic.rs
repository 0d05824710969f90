//! Diagnostics of the VRL compiler, with their position in the program.

use std::ops::Range;

use lockstep_shared_validation::max_reported;
use serde::{Deserialize, Serialize};
use vrl::diagnostic::{Diagnostic, DiagnosticList, Formatter};

use crate::hint;

/// Maximum length of a line for a diagnostic with a source excerpt, in bytes.
const LONGEST_DRAWN: usize = 400;

/// Diagnostic of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VrlDiagnostic {
    /// If true, the diagnostic is a warning.
    pub is_advice: bool,
    /// Message, with the position in the program.
    pub detail: String,
    /// Byte range of the program that the diagnostic refers to.
    pub within: Option<Range<usize>>,
    /// Hints of the compiler, such as a corrected statement. If the detail has no excerpt of the source, it contains
    /// them already, and this list is empty.
    pub hints: Vec<String>,
    /// File that Vector reads while it compiles the program. If it can be read, the diagnostic is no error.
    pub file: Option<String>,
}

impl VrlDiagnostic {
    pub(crate) fn error(detail: String) -> Self {
        Self {
            is_advice: false,
            detail,
            within: None,
            hints: Vec::new(),
            file: None,
        }
    }

    pub(crate) fn file(name: String, call: Range<usize>) -> Self {
        Self {
            within: Some(call),
            file: Some(name),
            ..Self::error("reads a file".to_owned())
        }
    }
}

/// Returns the errors of a program.
pub(crate) fn errors(source: &str, diagnostics: DiagnosticList) -> Vec<VrlDiagnostic> {
    vrl_diagnostics(source, diagnostics, false)
}

/// Returns the warnings of a program.
pub(crate) fn warnings(source: &str, diagnostics: DiagnosticList) -> Vec<VrlDiagnostic> {
    vrl_diagnostics(source, diagnostics, true)
}

/// Returns the first diagnostics in the order of the source: the compiler reports those of nested expressions before
/// those of earlier statements.
fn vrl_diagnostics(
    source: &str,
    diagnostics: DiagnosticList,
    is_advice: bool,
) -> Vec<VrlDiagnostic> {
    let mut ordered: Vec<_> = diagnostics.into_iter().collect();
    ordered.sort_by_key(|diagnostic| {
        // Without a position, a diagnostic concerns the whole program.
        let start = span(source, diagnostic).map(|bytes| bytes.start);
        start.unwrap_or_default()
    });
    // With one more than are reported, it is known that there are more.
    let first = ordered.into_iter().take(max_reported().saturating_add(1));
    let finding = |diagnostic| {
        let within = span(source, &diagnostic);
        // A warning is a single line.
        let (detail, hints) = render(source, diagnostic, !is_advice);
        VrlDiagnostic {
            is_advice,
            detail,
            within,
            hints,
            file: None,
        }
    };
    first.map(finding).collect()
}

/// Returns the byte range that a diagnostic refers to.
fn span(source: &str, diagnostic: &Diagnostic) -> Option<Range<usize>> {
    let mut labels = diagnostic.labels.iter();
    let label = labels.find(|label| label.primary);
    let span = label.or(diagnostic.labels.first())?.span;
    source.get(span.start()..span.end())?;
    Some(span.start()..span.end())
}

/// Formats a diagnostic with its position in the program. If `is_drawn` is true, an excerpt of the source with marks
/// follows, and the hints, which the excerpt contains, are returned separately. Otherwise the text contains them.
fn render(source: &str, diagnostic: Diagnostic, is_drawn: bool) -> (String, Vec<String>) {
    let at = span(source, &diagnostic).map(|bytes| bytes.start);
    let location = at.map(|at| {
        let before = &source[..at];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        format!(
            "line {line}, column {}: ",
            before[start..].chars().count() + 1
        )
    });
    let mut message = diagnostic.message.clone();
    if let Some(label) = diagnostic.labels.iter().find(|label| label.primary)
        && !label.message.is_empty()
        && !message.ends_with(&label.message)
    {
        message = format!("{message}: {}", label.message);
    }
    let message = format!("{}{message}", location.unwrap_or_default());
    let hints = hint::of(&diagnostic);
    let is_drawable = diagnostic
        .labels
        .iter()
        .all(|label| source.get(label.span.start()..label.span.end()).is_some());
    if !is_drawn || !is_drawable || source.lines().any(|line| line.len() > LONGEST_DRAWN) {
        let parts: Vec<_> = std::iter::once(message).chain(hints).collect();
        return (parts.join("; "), Vec::new());
    }
    let drawn = Formatter::new(source, diagnostic).to_string();
    // Without the repeated message and the general links.
    let lines = drawn.lines().skip_while(|line| !line.contains('┌'));
    let lines = lines.filter(|line| !hint::is_general_note(line));
    let drawn: Vec<_> = lines.collect();
    let drawn = drawn.join("\n");
    let drawn = drawn.trim_end_matches(['│', ' ', '\n']);
    // The output may be shown in a terminal.
    let drawn = drawn.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}");
    (format!("{message}\n{drawn}"), hints)
}
