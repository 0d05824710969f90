//! SARIF log: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::check::diagnostic::{FileReport, Level, SourceLocation};
use crate::check::render::tool::Tool;

/// Rule id for input that cannot be validated at all.
const PARSE_ERROR: &str = "parse-error";

pub(crate) fn write(out: &mut impl Write, tool: Tool, reports: &[FileReport]) -> io::Result<()> {
    let findings = || {
        reports
            .iter()
            .flat_map(|report| &report.documents)
            .flat_map(|document| &document.diagnostics)
    };
    let mut ids: BTreeSet<&str> = findings().map(|finding| finding.rule.as_str()).collect();
    if reports.iter().any(|report| !report.problems.is_empty()) {
        ids.insert(PARSE_ERROR);
    }
    let rules: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": tool.name, "version": tool.version, "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": reports.iter().flat_map(results).collect::<Vec<_>>(),
        }],
    });
    writeln!(out, "{log:#}")
}

fn results(report: &FileReport) -> Vec<Value> {
    let result = |id: &str, level: &str, message: &str, location: Option<&SourceLocation>| {
        let region = location.map(
            |SourceLocation { line, column, .. }| json!({"startLine": line, "startColumn": column}),
        );
        let mut location = json!({"artifactLocation": {"uri": uri(&report.name)}});
        if let Some(region) = region {
            location["region"] = region;
        }
        json!({
            "ruleId": id,
            "level": level,
            "message": {"text": message},
            "locations": [{"physicalLocation": location}],
        })
    };
    let mut results = Vec::new();
    for document in &report.documents {
        for finding in &document.diagnostics {
            let level = match finding.level {
                Level::Error => "error",
                Level::Warning => "warning",
                Level::Audit => "note",
            };
            results.push(result(
                &finding.rule,
                level,
                &finding.message(),
                Some(&finding.location),
            ));
        }
    }
    for problem in &report.problems {
        results.push(result(
            PARSE_ERROR,
            "error",
            &problem.message,
            problem.location.as_ref(),
        ));
    }
    results
}

/// Returns a file name as a relative URI reference.
fn uri(name: &str) -> String {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    name.bytes()
        .map(|byte| {
            if allowed(byte) {
                (byte as char).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
