//! Concise output: one line per diagnostic.

use std::io::{self, Write};

use crate::check::diagnostic::{FileReport, Level, SourceLocation, on_one_line};

pub(crate) fn write(out: &mut impl Write, report: &FileReport) -> io::Result<()> {
    let file = &report.name;
    for document in &report.documents {
        for finding in &document.diagnostics {
            let SourceLocation { line, column, .. } = finding.location;
            let label = match finding.level {
                Level::Error => "",
                Level::Warning => "warning: ",
                Level::Audit => "audit: ",
            };
            writeln!(
                out,
                "{file}:{line}:{column}: {label}{} [{}]",
                finding.message(),
                on_one_line(&finding.rule)
            )?;
        }
    }
    for problem in &report.problems {
        match &problem.location {
            Some(SourceLocation { line, column, .. }) => {
                writeln!(out, "{file}:{line}:{column}: {}", problem.message)?;
            }
            None => writeln!(out, "{file}: {}", problem.message)?,
        }
    }
    Ok(())
}
