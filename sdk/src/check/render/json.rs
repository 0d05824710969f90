//! JSON output: one object per document.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::check::diagnostic::{Diagnostic, FileReport, Level};

pub(crate) fn write(out: &mut impl Write, report: &FileReport) -> io::Result<()> {
    for document in &report.documents {
        let list = |level| {
            let own = document
                .diagnostics
                .iter()
                .filter(|finding| finding.level == level);
            own.map(finding).collect::<Vec<_>>()
        };
        let mut line = json!({
            "file": report.name,
            "kind": document.kind,
            "name": document.name,
            "valid": document.is_valid(),
            "errors": list(Level::Error),
            "warnings": list(Level::Warning),
            "audited": list(Level::Audit),
        });
        if let Some(stored) = &document.diff {
            line["stored"] = json!(stored);
        }
        writeln!(out, "{line}")?;
    }
    for problem in &report.problems {
        let location = problem.location.as_ref();
        let line = json!({
            "file": report.name,
            "valid": false,
            "problem": problem.message,
            "line": location.map(|location| location.line),
            "column": location.map(|location| location.column),
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn finding(finding: &Diagnostic) -> Value {
    json!({
        "type": finding.error.error_type.as_str(),
        "field": finding.error.path.to_string(),
        "detail": finding.error.detail,
        "hints": finding.hints().collect::<Vec<_>>(),
        "message": finding.error.to_string(),
        "rule": finding.rule,
        "layer": finding.layer.as_str(),
        "line": finding.location.line,
        "column": finding.location.column,
    })
}
