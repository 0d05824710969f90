//! Human-readable output: each diagnostic with its source line.

use std::io::{self, Write};

use annotate_snippets::{AnnotationKind, Level as Shown, Renderer, Snippet};

use crate::check::diagnostic::{FileReport, Level, SourceLocation, on_one_line};

/// Lines longer than this are cut around the location: a minified document is one line.
const MAX_LINE_BYTES: usize = 400;

pub(crate) fn write(out: &mut impl Write, report: &FileReport, colours: bool) -> io::Result<()> {
    let renderer = if colours {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut show = |level: Shown<'static>,
                    id: Option<&str>,
                    message: &str,
                    hints: &mut dyn Iterator<Item = String>,
                    location: Option<&SourceLocation>| {
        let mut title = level.primary_title(message.to_owned());
        if let Some(id) = id {
            title = title.id(on_one_line(id));
        }
        let mut group = match location {
            Some(location) => {
                let (shown, span) = around(&report.text, location);
                let snippet = Snippet::source(shown)
                    .line_start(usize::try_from(location.line).unwrap_or(1))
                    .path(report.name.clone())
                    .annotation(AnnotationKind::Primary.span(span));
                title.element(snippet)
            }
            None => title.element(annotate_snippets::Origin::path(report.name.clone())),
        };
        for hint in hints {
            group = group.element(Shown::HELP.message(hint));
        }
        writeln!(out, "{}\n", renderer.render(&[group]))
    };
    for document in &report.documents {
        for finding in &document.diagnostics {
            let level = match finding.level {
                Level::Error => Shown::ERROR,
                Level::Warning => Shown::WARNING,
                Level::Audit => Shown::NOTE,
            };
            show(
                level,
                Some(&finding.rule),
                &finding.headline(),
                &mut finding.hints(),
                Some(&finding.location),
            )?;
        }
    }
    for problem in &report.problems {
        show(
            Shown::ERROR,
            None,
            &problem.message,
            &mut std::iter::empty(),
            problem.location.as_ref(),
        )?;
    }
    Ok(())
}

/// Returns the line of a location, and the range of the location in that line.
fn around<'a>(text: &'a str, location: &SourceLocation) -> (&'a str, std::ops::Range<usize>) {
    let start = text.floor_char_boundary(location.span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = text.floor_char_boundary(location.span.end.clamp(start, line_end));
    let from = text.floor_char_boundary(line_start.max(start.saturating_sub(MAX_LINE_BYTES)));
    let to = text.floor_char_boundary(line_end.min(end.max(start) + MAX_LINE_BYTES));
    let shown = text[from..to].trim_end_matches('\r');
    let end = (end - from).min(shown.len());
    (shown, (start - from).min(end)..end)
}
