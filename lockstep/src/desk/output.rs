//! What was found, for people and for programs.

mod github;
mod json;
mod junit;
mod sarif;
mod short;
mod text;

use std::io::{self, Write};

use crate::desk::judge::FileReport;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Each finding with the line that it is about, for people.
    Full,
    /// One line a finding: file, line, column, message, rule.
    Concise,
    /// One JSON object a document.
    Json,
    /// A SARIF 2.1.0 log, for code scanning.
    Sarif,
    /// A `JUnit` report: a suite a file, a case a document.
    Junit,
    /// Workflow commands that annotate the lines of a change on GitHub.
    Github,
}

impl Format {
    /// Whether there is a place in it for what the cluster would store.
    pub(crate) fn shows_defaulted(self) -> bool {
        matches!(self, Self::Full | Self::Concise | Self::Json)
    }
}

/// Writes reports as they come; some formats can be written only at the end.
pub(crate) struct Writer<W> {
    format: Format,
    colours: bool,
    out: W,
    reports: Vec<FileReport>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(format: Format, colours: bool, out: W) -> Self {
        Self {
            format,
            colours,
            out,
            reports: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, report: FileReport) -> io::Result<()> {
        match self.format {
            Format::Full => text::write(&mut self.out, &report, self.colours)?,
            Format::Concise => short::write(&mut self.out, &report)?,
            Format::Json => json::write(&mut self.out, &report)?,
            Format::Github => github::write(&mut self.out, &report)?,
            Format::Sarif | Format::Junit => {
                // The text itself is not needed any more.
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
            Format::Sarif => sarif::write(&mut self.out, &self.reports)?,
            Format::Junit => junit::write(&mut self.out, &self.reports)?,
            _ => {}
        }
        self.out.flush()
    }
}
