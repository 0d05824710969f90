//! Results in Markdown, for the documentation.

use std::fmt;
use std::process::Command;

use anyhow::{Context, ensure};
use comfy_table::{Table, presets};
use jiff::Timestamp;

/// Date and commit of a measurement.
pub struct MeasuredCommit {
    date: String,
    commit: String,
}

impl MeasuredCommit {
    /// Returns the current date and the commit of the repository.
    pub fn current() -> anyhow::Result<Self> {
        let output = Command::new("git")
            .current_dir(crate::root())
            .args(["rev-parse", "--short", "HEAD"])
            .output()
            .context("git")?;
        ensure!(output.status.success(), "git: {}", output.status);
        Ok(Self {
            date: Timestamp::now().strftime("%F").to_string(),
            commit: String::from_utf8(output.stdout)?.trim().to_owned(),
        })
    }
}

impl fmt::Display for MeasuredCommit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, commit } = self;
        write!(formatter, "Measured on {date} with the commit {commit}.")
    }
}

/// Prints a table.
pub fn print_table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_header(header)
        .add_rows(rows);
    println!("\n{table}");
}
