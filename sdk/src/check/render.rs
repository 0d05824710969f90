//! Output formats of the check.

mod concise;
mod full;
mod github;
mod json;
mod junit;
mod sarif;
mod tool;

use std::io::{self, Write};

use crate::check::diagnostic::FileReport;
pub(crate) use crate::check::render::tool::Tool;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Human-readable diagnostics with the source line.
    Full,
    /// One line per diagnostic: file, line, column, message, rule.
    Concise,
    /// One JSON object per document.
    Json,
    /// SARIF 2.1.0 log, for code scanning.
    Sarif,
    /// `JUnit` report: one test suite per file, one test case per document.
    Junit,
    /// GitHub workflow commands that annotate the lines of a change.
    Github,
}

impl Format {
    /// Returns true if the format can show how the cluster would store an object.
    pub(crate) fn shows_defaulted(self) -> bool {
        matches!(self, Self::Full | Self::Concise | Self::Json)
    }
}

/// Writes reports as they arrive. Some formats can be written only at the end.
pub(crate) struct Writer<W> {
    tool: Tool,
    format: Format,
    colours: bool,
    out: W,
    reports: Vec<FileReport>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(tool: Tool, format: Format, colours: bool, out: W) -> Self {
        Self {
            tool,
            format,
            colours,
            out,
            reports: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, report: FileReport) -> io::Result<()> {
        match self.format {
            Format::Full => full::write(&mut self.out, &report, self.colours)?,
            Format::Concise => concise::write(&mut self.out, &report)?,
            Format::Json => json::write(&mut self.out, &report)?,
            Format::Github => github::write(&mut self.out, &report)?,
            Format::Sarif | Format::Junit => {
                // These formats do not quote the text.
                self.reports.push(FileReport {
                    text: String::new(),
                    ..report
                });
                return Ok(());
            }
        }
        for document in &report.documents {
            if let Some(stored) = document
                .diff
                .as_ref()
                .filter(|_| matches!(self.format, Format::Full | Format::Concise))
            {
                writeln!(
                    self.out,
                    "{} {}/{}:\n{stored}",
                    report.name, document.kind, document.name
                )?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.format {
            Format::Sarif => sarif::write(&mut self.out, self.tool, &self.reports)?,
            Format::Junit => junit::write(&mut self.out, self.tool, &self.reports)?,
            _ => {}
        }
        self.out.flush()
    }
}
