//! Comparison with the list of everything that Vector rejects while it builds its components.
//!
//! Each line of the list is one check: the component, the condition, the place in Vector's sources, a configuration that
//! violates the check and a similar one that does not. `measured` names recorded configurations that show it; the other
//! lines are read from the sources.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::confinement::OptOut;
use crate::diagnostic::Diagnostic;
use crate::interpolation::Interpolation;
use crate::start_up::validate_start_up;

const LIST: &str = include_str!("checks.jsonl");

/// Number of checks whose violation is reported. A change that covers more raises this number.
const REPORTED: usize = 310;

#[derive(Deserialize)]
struct ListedCheck {
    component: String,
    /// Block of the configuration that contains the component.
    block: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    /// Place in Vector's sources.
    #[serde(default)]
    source: String,
    /// File, socket or variable on which the check depends besides the configuration.
    environment: Option<String>,
    /// When Vector notices the violation: `build`, `start`, `running`, or `never` for a component without checks.
    when: String,
    check: String,
    fails: Option<Value>,
    passes: Option<Value>,
}

fn list() -> Vec<ListedCheck> {
    let lines = LIST.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

fn problems(block: &str, component: &Value) -> Vec<Diagnostic> {
    let config = json!({ (block): {"x": component} });
    validate_start_up(
        Catalogue::shipped(),
        &config,
        OptOut::Author,
        Interpolation::Off,
    )
}

#[test]
fn violations_of_the_listed_checks_are_reported_and_similar_configurations_are_not() {
    let list = list();
    let mut reported = 0;
    let mut missed = BTreeSet::new();
    let mut denied = Vec::new();
    for listed in &list {
        let Some(block) = &listed.block else {
            continue;
        };
        let passes = listed
            .passes
            .iter()
            .flat_map(|passes| problems(block, passes));
        let passes = passes
            .map(|problem| format!("{}: {}: {}", listed.component, listed.check, problem.error));
        denied.extend(passes);
        let starts = ["never", "running"].contains(&listed.when.as_str());
        if let Some(fails) = listed.fails.as_ref().filter(|_| !starts) {
            if problems(block, fails).is_empty() {
                missed.insert(format!("{}: {fails}", listed.component));
            } else {
                reported += 1;
            }
        }
    }
    // Shown if the test fails, or with `--nocapture`.
    for missed in &missed {
        println!("not reported: {missed}");
    }
    assert!(
        denied.is_empty(),
        "configurations that Vector starts are denied: {denied:#?}"
    );
    assert_eq!(
        reported, REPORTED,
        "the number of violations that are reported"
    );
}

/// The sources of a component that is missing in the list may not have been read.
#[test]
fn the_list_has_every_component() {
    let catalogue = Catalogue::shipped();
    let listed: BTreeSet<String> = list()
        .into_iter()
        .filter_map(|listed| {
            let (block, kind) = listed.component.split_once('/')?;
            let kind = kind.split([' ', '(']).next()?;
            Some(format!("{block}/{kind}"))
        })
        .collect();
    for family in crate::component::ComponentKind::ALL {
        for kind in catalogue.kinds(family) {
            let name = format!("{}/{kind}", family.block());
            assert!(listed.contains(&name), "{name} is not in the list");
        }
    }
}

/// Page with every line of the list.
#[test]
fn the_page_lists_every_check() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/vector-start-checks.md"
    );
    let page = page(&list());
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let committed = std::fs::read_to_string(path).expect("the page");
    assert!(
        committed == page,
        "docs/vector-start-checks.md is not current: run this test with LOCKSTEP_UPDATE=1"
    );
}

fn page(list: &[ListedCheck]) -> String {
    let mut page = String::from(include_str!("checks_page.md"));
    for listed in list {
        let Some(block) = &listed.block else {
            continue;
        };
        let reported = match &listed.fails {
            _ if listed.environment.is_some() => "depends on the host",
            None => "nothing to check",
            Some(fails) if !problems(block, fails).is_empty() => "yes",
            Some(_) => "no",
        };
        let cell = |text: &str| {
            let escaped = text.replace('|', "\\|").replace('<', "&lt;");
            escaped.replace(['\n', '\r'], " ")
        };
        page.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            cell(&listed.component),
            cell(&listed.options.join(", ")),
            listed.when,
            cell(&listed.source),
            reported
        ));
    }
    page
}
