//! Comparison with the real Vector: its recorded results for thousands of configurations, and those of Lockstep.
//!
//! `WRITE=1 cargo test -p lockstep --test agreement` writes the page that lists the differences.

mod next_version;
mod scalars;
mod start;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

/// Share of all results that must be equal.
const LEAST: f64 = 0.995;

/// One configuration with both results.
struct Compared {
    id: String,
    /// Subject of the configuration.
    tag: String,
    real: bool,
    ours: bool,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Recording of `vector validate --no-environment`.
const RECORDING: &str = "vector-0.57.jsonl.gz";

/// Reads a recording.
fn recorded(name: &str) -> Vec<Value> {
    let path = root().join("tests/agreement").join(name);
    let file = File::open(path).expect("the recorded results");
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    let read = |line: std::io::Result<String>| serde_json::from_str(&line.expect("a line"));
    lines.map(read).collect::<Result<_, _>>().expect("JSON")
}

/// Returns for each configuration, by its id, whether `lockstep vector validate --input-format=jsonl` finds it valid.
fn valid_lines(recorded: &[&Value], flags: &[&str]) -> BTreeMap<String, bool> {
    let lines: Vec<_> = recorded
        .iter()
        .map(|line| {
            let request =
                json!({"id": line["id"], "config": line["config"], "format": line["format"]});
            request.to_string()
        })
        .collect();
    let mut program = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["vector", "validate", "--input-format=jsonl"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = program.stdin.take().expect("a pipe to standard input");
    let writing = std::thread::spawn(move || input.write_all(lines.join("\n").as_bytes()));
    let output = program.wait_with_output().expect("the process ends");
    writing
        .join()
        .expect("a thread")
        .expect("the program reads all its input");
    let output_lines = String::from_utf8(output.stdout).expect("text");
    let results = output_lines.lines().map(|line| {
        let result: Value = serde_json::from_str(line).expect("a validation result");
        let id = result["id"].as_str().expect("an id").to_owned();
        (id, result["valid"].as_bool().expect("a validation result"))
    });
    results.collect()
}

fn compared() -> Vec<Compared> {
    let recorded = recorded(RECORDING);
    let ours = valid_lines(&recorded.iter().collect::<Vec<_>>(), &[]);
    let compare = |line: &Value| {
        let id = line["id"].as_str().expect("an id").to_owned();
        Compared {
            tag: line["tag"].as_str().unwrap_or_default().to_owned(),
            real: line["valid"].as_bool().expect("a validation result"),
            ours: ours[&id],
            id,
        }
    };
    recorded.iter().map(compare).collect()
}

/// Page that lists how many results are equal, and the differences.
fn page(all: &[Compared]) -> String {
    let mut by_subject: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for one in all {
        let subject = one.tag.split(':').next().unwrap_or_default();
        let (count, equal) = by_subject.entry(subject).or_default();
        *count += 1;
        *equal += usize::from(one.real == one.ours);
    }
    let equal = all.iter().filter(|one| one.real == one.ours).count();
    let mut page = format!(
        "# Agreement with Vector\n\n\
         `lockstep vector validate` compared with `vector validate --no-environment` of Vector 0.57, on {} recorded \
         configurations: {equal} results are equal.\n\n\
         Written by `WRITE=1 cargo test -p lockstep --test agreement`; the same test fails when a result changes, \
         when fewer than 99.5 % are equal, or when Lockstep rejects a configuration that Vector accepts.\n\n\
         | about | configurations | equal |\n|---|---|---|\n",
        all.len()
    );
    for (subject, (count, equal)) in by_subject {
        page.push_str(&format!("| {subject} | {count} | {equal} |\n"));
    }
    page.push_str("\n## Differences\n\n");
    let different: Vec<_> = all.iter().filter(|one| one.real != one.ours).collect();
    if different.is_empty() {
        page.push_str("None.\n");
    }
    for one in different {
        let word = |valid: bool| if valid { "accepts" } else { "rejects" };
        page.push_str(&format!(
            "- `{}` ({}): Vector {} it, Lockstep {} it.\n",
            one.id,
            one.tag,
            word(one.real),
            word(one.ours)
        ));
    }
    page.push_str(WHERE_IT_IS_STRICTER);
    page
}

/// Differences that no recorded configuration shows.
const WHERE_IT_IS_STRICTER: &str = "
## Where Lockstep is stricter, on purpose

- A cycle that reaches no sink: Vector aborts, Lockstep reports the path of the cycle.
- A program that exceeds the limits for validation in a review, which [limits](pipelines.md#limits) lists.
- A file that is read while a program is compiled (`file` and `files` of `remap`, `desc_file`, `psl`,
  `alias_sources`): the file belongs to the agent, and its content is unknown where a pipeline is validated. Vector
  accepts the configuration if the file exists, as `lockstep vector validate` does.
";

#[test]
fn results_agree_with_the_real_vector() {
    let all = compared();
    assert!(all.len() > 2_000, "recorded results are missing");
    let rejected: Vec<_> = all
        .iter()
        .filter(|one| one.real && !one.ours)
        .map(|one| &one.id)
        .collect();
    assert!(
        rejected.is_empty(),
        "Lockstep rejects configurations that Vector accepts: {rejected:?}"
    );
    let equal = all.iter().filter(|one| one.real == one.ours).count();
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let share = equal as f64 / all.len() as f64;
    assert!(share >= LEAST, "{equal} of {} are equal", all.len());
    assert_page(&page(&all), Part::Load);
}

/// A part of the page, which one test compares.
#[derive(Clone, Copy)]
enum Part {
    /// Everything before the section about the start.
    Load,
    /// The section about the start.
    Start,
    /// The section about the version after the default one.
    NextVersion,
}

/// Compares a part of the page with its text, or writes it.
fn assert_page(text: &str, part: Part) {
    const START: &str = "\n## The start of Vector\n";
    const NEXT: &str = "\n## Vector 0.58\n";
    // Several tests write to one file.
    static PAGE: Mutex<()> = Mutex::new(());
    let _guard = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join("docs/vector/agreement.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (rest, next) = page.split_at(page.find(NEXT).unwrap_or(page.len()));
    let (load, start) = rest.split_at(rest.find(START).unwrap_or(rest.len()));
    if std::env::var_os("WRITE").is_some() {
        let page = match part {
            Part::Load => format!("{text}{start}{next}"),
            Part::Start => format!("{load}{text}{next}"),
            Part::NextVersion => format!("{load}{start}{text}"),
        };
        return fs::write(&path, page).expect("the page");
    }
    let found = match part {
        Part::Load => load,
        Part::Start => start,
        Part::NextVersion => next,
    };
    assert_eq!(found, text, "the page is out of date");
}
