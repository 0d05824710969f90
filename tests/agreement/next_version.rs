//! Comparison with Vector 0.58, measured five days before its release: the recording of 0.57, and the results that changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::start::{ENDS_AFTER_START, RECORDING};
use crate::{Part, assert_page, recorded, valid_lines};

const CHANGES: &str = "startup-0.58-changes.jsonl.gz";

/// Configurations that 0.57 rejects for what 0.58 accepts, such as a null in place of an option that is left out, and that
/// 0.58 rejects for a file, a server or credentials that the recording machine did not have.
const OF_THE_HOST: &str = include_str!("startup-0.58-host.txt");

/// The number of equal results. A change that improves it raises this number.
const LEAST_EQUAL: usize = 8_677;

/// Changed results.
struct Changes {
    newly_rejected: usize,
    newly_accepted: usize,
    wrong: BTreeSet<String>,
}

#[test]
fn results_for_the_next_version_agree_with_the_real_vector() {
    let recorded_lines = recorded(RECORDING);
    let lines: Vec<&Value> = recorded_lines.iter().collect();
    let ours = valid_lines(&lines, &["--start", "--vector-version", "0.58"]);
    let recorded_changes = recorded(CHANGES);
    let by_id: BTreeMap<&str, bool> = recorded_changes
        .iter()
        .map(|line| (text(line, "id"), line["starts_0.58"] == true))
        .collect();
    let of_the_host: BTreeSet<&str> = OF_THE_HOST
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.0))
        .collect();
    let (mut compared, mut wrong) = (0, BTreeSet::new());
    let mut changed = Changes {
        newly_rejected: 0,
        newly_accepted: 0,
        wrong: BTreeSet::new(),
    };
    for line in &recorded_lines {
        let id = text(line, "id");
        if of_the_host.contains(id) {
            continue;
        }
        compared += 1;
        let starts = by_id.get(id).copied();
        let expected = starts.unwrap_or(line["starts"] == true) && !ENDS_AFTER_START.contains(&id);
        let is_wrong = ours[id] != expected;
        if is_wrong {
            wrong.insert((id, expected));
        }
        let counted = match starts {
            Some(true) => &mut changed.newly_accepted,
            Some(false) => &mut changed.newly_rejected,
            None => continue,
        };
        *counted += 1;
        if is_wrong {
            changed.wrong.insert(id.to_owned());
        }
    }
    let refused: Vec<_> = wrong.iter().filter(|(_, starts)| *starts).collect();
    assert!(
        refused.is_empty(),
        "rejected, although they start: {refused:?}"
    );
    assert!(
        changed.wrong.is_empty(),
        "changed results: {:?}",
        changed.wrong
    );
    let equal = compared - wrong.len();
    assert!(
        equal >= LEAST_EQUAL,
        "{equal} of {compared} are equal: {wrong:?}"
    );
    assert_page(
        &section(compared, equal, &changed, of_the_host.len()),
        Part::NextVersion,
    );
}

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().expect("a text")
}

/// The section of the page.
fn section(compared: usize, equal: usize, changed: &Changes, of_the_host: usize) -> String {
    format!(
        "\n## Vector 0.58\n\n\
         `lockstep vector validate --start --vector-version 0.58` on the same configurations. The results of 0.58 were \
         recorded with Vector built from its main branch of 2026-08-21 (c3445d42d2), five days before the release of \
         0.58.0, with VRL 0.35.0; the release itself was not measured. Not compared are {of_the_host} configurations \
         that 0.57 rejects for what 0.58 accepts, such as a null, and 0.58 for a file, a server or credentials that the host lacks.\n\n\
         | result of Vector | configurations | equal |\n|---|---|---|\n\
         | rejected by 0.58 and not by 0.57 | {rejected} | {rejected} |\n\
         | accepted by 0.58 and not by 0.57 | {accepted} | {accepted} |\n\
         | all | {compared} | {equal} |\n",
        rejected = changed.newly_rejected,
        accepted = changed.newly_accepted,
    )
}
