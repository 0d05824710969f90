//! GitHub workflow commands:
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>.

use std::io::{self, Write};

use crate::check::diagnostic::{FileReport, Level, SourceLocation};

pub(crate) fn write(out: &mut impl Write, report: &FileReport) -> io::Result<()> {
    let mut command =
        |what: &str, location: Option<&SourceLocation>, title: &str, message: &str| {
            let file = property(&report.name);
            let location = location
                .map_or(String::new(), |SourceLocation { line, column, .. }| {
                    format!(",line={line},col={column}")
                });
            writeln!(
                out,
                "::{what} file={file}{location},title={}::{}",
                property(title),
                data(message)
            )
        };
    for document in &report.documents {
        for finding in &document.diagnostics {
            let what = match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Audit => "notice",
            };
            command(
                what,
                Some(&finding.location),
                &finding.rule,
                &finding.message(),
            )?;
        }
    }
    for problem in &report.problems {
        command(
            "error",
            problem.location.as_ref(),
            "cannot be validated",
            &problem.message,
        )?;
    }
    Ok(())
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
