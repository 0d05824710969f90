//! Report of a validation, in the form of `vector validate`: headings with a list below, and single lines.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use lockstep_sdk::on_one_line;

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// If standard output is a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

impl Color {
    fn is_used(self) -> bool {
        match self {
            Self::Auto => cfg!(unix) && io::stdout().is_terminal(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// Kind of a line, with the character at its beginning.
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Error,
    Warning,
    Success,
}

impl Level {
    /// Returns the ANSI code of the color.
    fn color(self) -> u8 {
        match self {
            Self::Error => 31,
            Self::Success => 32,
            Self::Warning => 33,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Error => "x",
            Self::Warning => "~",
            Self::Success => "√",
        }
    }
}

/// Writer of a report.
pub(crate) struct Report<W> {
    out: W,
    has_colors: bool,
    /// Width of the widest line, which the last lines have, too.
    width: usize,
    /// If true, text precedes, so that a heading needs an empty line before it.
    needs_space: bool,
}

impl<W: Write> Report<W> {
    pub(crate) fn new(out: W, color: Color) -> Self {
        Self {
            out,
            has_colors: color.is_used(),
            width: 0,
            needs_space: false,
        }
    }

    /// Writes a heading and a list.
    pub(crate) fn section(
        &mut self,
        heading: &str,
        level: Level,
        items: &[String],
    ) -> io::Result<()> {
        self.space()?;
        self.text(heading)?;
        writeln!(self.out, "{:-<width$}", "", width = heading.len())?;
        for item in items {
            self.line(level, item)?;
        }
        self.space()
    }

    /// Writes one line, or several if the text has line breaks.
    pub(crate) fn line(&mut self, level: Level, text: &str) -> io::Result<()> {
        let sign = self.colored(level, level.sign());
        write!(self.out, "{sign} ")?;
        // Excerpts of VRL programs keep their line breaks.
        let lines: Vec<_> = text.split('\n').map(on_one_line).collect();
        // The sign and a space.
        self.width = self.width.max(lines[0].chars().count() + 2);
        self.text(&lines.join("\n"))
    }

    /// Writes the last lines of a successful validation.
    pub(crate) fn validated(&mut self) -> io::Result<()> {
        let width = self.width;
        writeln!(self.out, "{:-^width$}", "")?;
        let word = format!("{:>width$}", "Validated");
        let word = self.colored(Level::Success, &word);
        writeln!(self.out, "{word}")
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let widest = text.lines().map(|line| line.chars().count()).max();
        self.width = self.width.max(widest.unwrap_or(0));
        self.needs_space = true;
        writeln!(self.out, "{text}")
    }

    fn space(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.needs_space) {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn colored(&self, level: Level, text: &str) -> String {
        if self.has_colors {
            format!("\u{1b}[{}m{text}\u{1b}[0m", level.color())
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        color: Color,
        write: impl Fn(&mut Report<&mut Vec<u8>>) -> io::Result<()>,
    ) -> String {
        let mut out = Vec::new();
        write(&mut Report::new(&mut out, color)).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_valid_configuration_ends_with_a_line_as_wide_as_the_widest() {
        let found = written(Color::Never, |report| {
            report.line(Level::Success, "Loaded [\"a.yaml\"]")?;
            report.line(Level::Success, "Transforms configuration")?;
            report.validated()
        });
        let expected = "√ Loaded [\"a.yaml\"]\n√ Transforms configuration\n--------------------------\n                 Validated\n";
        assert_eq!(found, expected);
    }

    #[test]
    fn a_section_has_a_heading_and_empty_lines_around() {
        let found = written(Color::Never, |report| {
            report.section(
                "Loaded with warnings",
                Level::Warning,
                &["one".to_owned(), "two\n  three\u{7}".to_owned()],
            )?;
            report.line(Level::Success, "Transforms configuration")?;
            report.section("Component errors", Level::Error, &["four".to_owned()])
        });
        let expected = "Loaded with warnings\n--------------------\n~ one\n~ two\n  three\\u{7}\n\n√ Transforms configuration\n\nComponent errors\n----------------\nx four\n\n";
        assert_eq!(found, expected);
    }

    #[test]
    fn colors_do_not_count_as_width() {
        let found = written(Color::Always, |report| {
            report.line(Level::Success, "Loaded")?;
            report.validated()
        });
        assert_eq!(
            found,
            "\u{1b}[32m√\u{1b}[0m Loaded\n--------\n\u{1b}[32mValidated\u{1b}[0m\n"
        );
    }
}
