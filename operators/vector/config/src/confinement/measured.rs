//! Comparison with the recorded behavior of the real Vector.

use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::component::{Component, ComponentKind};
use crate::confinement::{OPT_OUT, OptOut, validate};
use crate::diagnostic::{Check, DiagnosticList};
use crate::interpolation::Interpolation;

/// Recorded answers.
const MEASURED: &str = include_str!("measured.txt");

/// Template in an option, and the answer of Vector.
struct MeasuredCase<'a> {
    option: &'a str,
    template: &'a str,
    is_opted_out: bool,
    result: char,
}

fn cases() -> Vec<MeasuredCase<'static>> {
    let mut lines = MEASURED.lines().filter(|line| !line.starts_with('#'));
    let columns = lines.next().expect("the columns");
    let columns: Vec<_> = columns.split('\t').skip(1).collect();
    let mut all = Vec::new();
    for line in lines {
        let mut cells = line.split('\t');
        let option = cells.next().expect("an option");
        let results = cells.next().expect("the answers");
        assert_eq!(results.len(), columns.len(), "{option}");
        let first = columns.iter().copied().zip(results.chars());
        let further = cells.map(|cell| {
            let (template, result) = cell.rsplit_once('=').expect("a template and an answer");
            (template, result.chars().next().expect("an answer"))
        });
        for (template, result) in first.chain(further) {
            let unmarked = template.strip_prefix('!');
            all.push(MeasuredCase {
                option,
                template: unmarked.unwrap_or(template),
                is_opted_out: unmarked.is_some(),
                result,
            });
        }
    }
    all
}

/// Returns a sink with a template in one of its options.
fn sink(case: &MeasuredCase<'_>) -> Value {
    let (kind, option) = case.option.split_once('.').expect("a sink and an option");
    let mut sink = json!({"type": kind, "inputs": ["in"]});
    if kind == "axiom" {
        sink["dataset"] = "d".into();
    }
    if option.starts_with("data_stream.") {
        sink["mode"] = "data_stream".into();
    }
    if case.is_opted_out {
        sink[OPT_OUT] = true.into();
    }
    let mut value = &mut sink;
    let mut parts: Vec<_> = option.split('.').collect();
    if parts.last() == Some(&"KEY") {
        parts.pop();
        parts.push(case.template);
        for part in parts {
            value = &mut value[part];
        }
        *value = "v".into();
    } else {
        for part in parts {
            value = &mut value[part];
        }
        *value = case.template.into();
    }
    sink
}

fn is_rejected(sink: &Value) -> bool {
    let component = Component {
        block: "sinks",
        family: ComponentKind::Sink,
        id: "out",
        value: sink,
    };
    let mut problems = DiagnosticList::default();
    validate(
        Catalogue::shipped(),
        &component,
        OptOut::Author,
        Interpolation::Off,
        &mut problems,
    );
    let problems = problems.into_diagnostics();
    assert!(problems.iter().all(|it| it.check == Check::Confinement));
    !problems.is_empty()
}

#[test]
fn exactly_the_templates_that_vector_rejects_are_invalid() {
    let mut compared = 0;
    let mut different = Vec::new();
    for case in cases().iter().filter(|case| case.result != '-') {
        compared += 1;
        if is_rejected(&sink(case)) != (case.result == 'C') {
            different.push(format!(
                "{} {:?}{}: {}",
                case.option,
                case.template,
                if case.is_opted_out { " opted out" } else { "" },
                case.result
            ));
        }
    }
    assert!(compared > 1_600, "{compared}");
    assert!(different.is_empty(), "{}", different.join("\n"));
}
