//! `JUnit` report: one test suite per file, one test case per document.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::check::diagnostic::{CheckedDocument, Diagnostic, FileReport, Level};
use crate::check::render::tool::Tool;

pub(crate) fn write(out: &mut impl Write, tool: Tool, reports: &[FileReport]) -> io::Result<()> {
    let mut whole = Report::new(format!("{} check", tool.name));
    for report in reports {
        let mut suite = TestSuite::new(report.name.clone());
        for document in &report.documents {
            suite.add_test_case(case(document));
        }
        for problem in &report.problems {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(problem.message.clone());
            suite.add_test_case(TestCase::new("parse-error", status));
        }
        whole.add_test_suite(suite);
    }
    whole.serialize(&mut *out).map_err(io::Error::other)?;
    writeln!(out)
}

fn case(document: &CheckedDocument) -> TestCase {
    let name = format!("{}/{}", document.kind, document.name);
    let of_level = |level: Level| {
        document
            .diagnostics
            .iter()
            .filter(move |finding| finding.level == level)
    };
    let line = |finding: &Diagnostic| {
        format!(
            "line {}: {} [{}]",
            finding.location.line,
            finding.message(),
            finding.rule
        )
    };
    let errors: Vec<_> = of_level(Level::Error).map(line).collect();
    let status = match errors.first() {
        None => TestCaseStatus::success(),
        Some(first) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(first.clone());
            status.set_description(errors.join("\n"));
            status
        }
    };
    let mut case = TestCase::new(name, status);
    let warnings: Vec<_> = of_level(Level::Warning).map(line).collect();
    if !warnings.is_empty() {
        case.set_system_out(warnings.join("\n"));
    }
    case
}
