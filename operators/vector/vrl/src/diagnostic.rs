//! Diagnostics of the VRL compiler, with their position in the program.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use vrl::diagnostic::{Diagnostic, DiagnosticList, Formatter};

/// Maximum number of diagnostics that are reported for one program.
const MAX_REPORTED: usize = 10;

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
}

impl VrlDiagnostic {
    pub(crate) fn error(detail: String) -> Self {
        Self {
            is_advice: false,
            detail,
            within: None,
        }
    }
}

/// Returns the errors of a program.
pub(crate) fn errors(source: &str, diagnostics: DiagnosticList) -> Vec<VrlDiagnostic> {
    let more = diagnostics.len().saturating_sub(MAX_REPORTED);
    let mut findings = vrl_diagnostics(source, diagnostics, false);
    if more > 0 {
        findings.push(VrlDiagnostic {
            is_advice: false,
            detail: format!("and {more} more errors, which may be caused by the previous ones"),
            within: None,
        });
    }
    findings
}

/// Returns the warnings of a program.
pub(crate) fn warnings(source: &str, diagnostics: DiagnosticList) -> Vec<VrlDiagnostic> {
    vrl_diagnostics(source, diagnostics, true)
}

fn vrl_diagnostics(
    source: &str,
    diagnostics: DiagnosticList,
    is_advice: bool,
) -> Vec<VrlDiagnostic> {
    let first = diagnostics.into_iter().take(MAX_REPORTED);
    let finding = |diagnostic| VrlDiagnostic {
        is_advice,
        within: span(source, &diagnostic),
        // A warning is a single line.
        detail: render(source, diagnostic, !is_advice),
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
/// follows.
fn render(source: &str, diagnostic: Diagnostic, is_drawn: bool) -> String {
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
        && label.message != message
    {
        message = format!("{message}: {}", label.message);
    }
    let is_drawable = diagnostic
        .labels
        .iter()
        .all(|label| source.get(label.span.start()..label.span.end()).is_some());
    if !is_drawn || !is_drawable || source.lines().any(|line| line.len() > LONGEST_DRAWN) {
        return format!("{}{message}", location.unwrap_or_default());
    }
    let drawn = Formatter::new(source, diagnostic).to_string();
    // Without the repeated message and the general links.
    let lines = drawn.lines().skip_while(|line| !line.contains('┌'));
    let lines = lines.filter(|line| !line.trim_start().starts_with("= "));
    let drawn: Vec<_> = lines.collect();
    let drawn = drawn.join("\n");
    let drawn = drawn.trim_end_matches(['│', ' ', '\n']);
    // The output may be shown in a terminal.
    let drawn = drawn.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}");
    format!("{}{message}\n{drawn}", location.unwrap_or_default())
}
