//! Comparison with the list of everything that Vector rejects while it builds its components.
//!
//! Each line of the list is one check: the component, the condition, the place in Vector's sources, a configuration that
//! violates the check and a similar one that does not. `measured` names recorded configurations that show it; the other
//! lines are read from the sources.

use std::collections::BTreeSet;

use lockstep_vector_vrl::InProcessCompiler;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalogue::Catalogue;
use crate::confinement::OptOut;
use crate::diagnostic::{Check, Diagnostic};
use crate::interpolation::Interpolation;
use crate::start_up::{validate_secrets, validate_start_up};
use crate::validate::{ProgramScope, validate_config};
use crate::vrl_environment::VrlEnvironment;

const LIST: &str = include_str!("checks.jsonl");

/// Number of checks whose violation is reported as an error. A change that covers more raises this number.
const REPORTED: usize = 401;

/// Number of checks whose violation is reported as a warning, because Vector starts and ends later.
const WARNED: usize = 22;

#[derive(Deserialize)]
struct ListedCheck {
    component: String,
    /// Block of the configuration that contains the component. Without it, the examples are whole configurations.
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
    /// Reason why a violation is not reported.
    not_reported: Option<String>,
}

fn list() -> Vec<ListedCheck> {
    let lines = LIST.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

/// Returns the problems of an example: those of the start, and those of its programs.
fn problems(block: Option<&str>, example: &Value) -> Vec<Diagnostic> {
    let catalogue = Catalogue::shipped();
    let config = match block {
        Some(block) => json!({ (block): {"x": example} }),
        None => example.clone(),
    };
    let mut problems = validate_start_up(catalogue, &config, OptOut::Author, Interpolation::Off);
    problems.extend(validate_secrets(catalogue, &config));
    let programs = validate_config(
        catalogue,
        &config,
        &BTreeSet::new(),
        &VrlEnvironment::shared(InProcessCompiler::boxed),
        ProgramScope::Start,
    );
    let programs = programs.into_iter();
    problems.extend(programs.filter(|problem| problem.check == Check::Programs));
    problems
}

/// Returns how a violation is reported: by a rule, or not for a reason.
fn reported(listed: &ListedCheck) -> Result<&'static str, &str> {
    if listed.environment.is_some() {
        return Err("depends on the host");
    }
    let Some(fails) = &listed.fails else {
        return Err("nothing to check");
    };
    let found = problems(listed.block.as_deref(), fails);
    let has = |check| found.iter().any(|problem| problem.check == check);
    if has(Check::StartUp) {
        Ok("yes")
    } else if has(Check::Confinement) {
        Ok("yes, by `template-confinement`")
    } else if has(Check::Programs) {
        Ok("yes, by `vrl-compile`")
    } else if has(Check::AfterStart) {
        Ok("a warning, by `component-run`")
    } else {
        Err(listed.not_reported.as_deref().unwrap_or("no"))
    }
}

#[test]
fn violations_of_the_listed_checks_are_reported_and_similar_configurations_are_not() {
    let list = list();
    let (mut errors, mut warnings) = (0, 0);
    let mut missed = BTreeSet::new();
    let mut denied = Vec::new();
    for listed in &list {
        let passes = listed
            .passes
            .iter()
            .flat_map(|passes| problems(listed.block.as_deref(), passes));
        let passes = passes
            .map(|problem| format!("{}: {}: {}", listed.component, listed.check, problem.error));
        denied.extend(passes);
        match reported(listed) {
            Ok(by) if by.starts_with("yes") => errors += 1,
            Ok(_) => warnings += 1,
            Err("no") => {
                missed.insert(format!("{}: {}", listed.component, listed.check));
            }
            Err(_) => {}
        }
        let has_reason = listed.not_reported.is_some();
        assert!(
            !has_reason || reported(listed).is_err(),
            "{} is reported: {}",
            listed.component,
            listed.check
        );
    }
    assert!(
        denied.is_empty(),
        "configurations that Vector starts are denied: {denied:#?}"
    );
    assert!(
        missed.is_empty(),
        "neither reported nor with a reason: {missed:#?}"
    );
    assert_eq!(
        (errors, warnings),
        (REPORTED, WARNED),
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
        "/../../../docs/vector/start-checks.md"
    );
    let page = page(&list());
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let committed = std::fs::read_to_string(path).expect("the page");
    assert!(
        committed == page,
        "docs/vector/start-checks.md is not current: run this test with LOCKSTEP_UPDATE=1"
    );
}

fn page(list: &[ListedCheck]) -> String {
    let mut page = String::from(include_str!("checks_page.md"));
    let has_example = |listed: &&ListedCheck| listed.block.is_some() || listed.fails.is_some();
    for listed in list.iter().filter(has_example) {
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
            reported(listed).unwrap_or_else(|reason| reason)
        ));
    }
    page
}
