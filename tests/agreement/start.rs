//! Comparison with the start of the real Vector: `vector validate --skip-healthchecks`, which also builds each
//! component, and `lockstep vector validate --start`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::{recorded, valid_lines};

/// Recording of `vector validate --skip-healthchecks`.
pub const RECORDING: &str = "startup-0.57.jsonl.gz";

/// The number of equal results with `--start`. A change that improves it raises this number.
const LEAST_EQUAL: usize = 8_744;

/// Texts in Vector's errors about template confinement.
const CONFINEMENT: [&str; 3] = [
    "set `dangerously_allow_unconfined_template_resolution: true` to opt out",
    "HTTP/HTTPS URI prefix",
    "`base_dir`",
];

/// Configurations that `vector validate` accepts and with which Vector ends right after its start. Those with secrets have
/// no backend for them: `vector validate` does not read secrets.
pub const ENDS_AFTER_START: [&str; 10] = [
    "e2e-pipeline-secrets-cvp-pipeline-yaml-4655e913c8",
    "frag-erator-internal-generator-vector-output-azure-azurelogsingestion-azli-timestamp-field-toml-f9b4de41.yaml",
    "frag-ogging-operator-internal-generator-vector-output-azure-azurelogsingestion-azli-tuning-toml-389d808f.yaml",
    "frag-shift-cluster-logging-operator-internal-generator-vector-output-http-http-with-ndjson-toml-0c395d24.yaml",
    "frag-shift-cluster-logging-operator-internal-generator-vector-output-http-http-with-tuning-toml-8aa1345a.yaml",
    "frag-t-cluster-logging-operator-internal-generator-vector-output-http-http-with-auth-basic-toml-46b3ab06.yaml",
    "frag-t-cluster-logging-operator-internal-generator-vector-output-http-http-with-auth-token-toml-133b840f.yaml",
    "frag-tor-internal-generator-vector-output-azure-azurelogsingestion-azli-tuning-under-limit-toml-6e19b498.yaml",
    "probe-provider-beside-components",
    "probe-starts-file-bad-glob",
];

/// One configuration with the results of both programs.
pub struct Started {
    id: String,
    /// The phase in which Vector rejects it: `load`, which `--no-environment` includes, `build`, or `start`, which no
    /// validation includes.
    half: String,
    /// False if Vector rejects it or ends right after its start.
    starts: bool,
    says: String,
    /// The result without `--start`.
    plain: bool,
    /// The result with `--start`.
    start: bool,
}

impl Started {
    fn is_confinement(&self) -> bool {
        !self.starts && CONFINEMENT.iter().any(|text| self.says.contains(text))
    }

    /// Returns true if only `--start` rejects the configuration.
    fn is_refused_at_start(&self) -> bool {
        self.plain && !self.start
    }
}

/// Runs both programs on the recording.
pub fn compared() -> Vec<Started> {
    let recorded = recorded(RECORDING);
    let plain = results(&recorded, &[]);
    let start = results(&recorded, &["--start"]);
    let compare = |line: &Value| {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let id = text("id");
        let ends = ENDS_AFTER_START.contains(&id.as_str());
        let half = match text("half").as_str() {
            "" if ends => "start".to_owned(),
            "" => "starts".to_owned(),
            // A panic while it loads or builds.
            half => half.trim_end_matches("-panic").to_owned(),
        };
        Started {
            half,
            starts: line["starts"].as_bool().expect("a result") && !ends,
            says: text("says"),
            plain: plain[&id],
            start: start[&id],
            id,
        }
    };
    recorded.iter().map(compare).collect()
}

/// Returns which configurations are valid.
fn results(recorded: &[Value], flags: &[&str]) -> BTreeMap<String, bool> {
    let is_text = |line: &&Value| line["format"].is_string();
    let (texts, objects): (Vec<&Value>, Vec<&Value>) = recorded.iter().partition(is_text);
    let mut results = valid_lines(&objects, flags);
    let queue = Mutex::new(texts.into_iter());
    let next = || queue.lock().expect("no thread panics").next();
    let found = Mutex::new(Vec::new());
    // Each text is validated by a process of its own.
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(line) = next() {
                    let id = line["id"].as_str().expect("an id").to_owned();
                    let valid = is_valid_text(line, flags);
                    found.lock().expect("no thread panics").push((id, valid));
                }
            });
        }
    });
    results.extend(found.into_inner().expect("no thread panics"));
    results
}

/// Validates a configuration that is recorded as the text of a file.
fn is_valid_text(line: &Value, flags: &[&str]) -> bool {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = line["config"].as_str().expect("a text");
    file.write_all(text.as_bytes())
        .expect("the file is written");
    let format = line["format"].as_str().expect("a format");
    let output = Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(["vector", "validate"])
        .args(flags)
        .arg(format!("--config-{format}"))
        .arg(file.path())
        .output()
        .expect("the program runs");
    match output.status.code() {
        Some(0) => true,
        Some(78) => false,
        other => panic!("{}: exit code {other:?}", line["id"]),
    }
}

/// The section of the page.
pub fn section(all: &[Started]) -> String {
    let mut by_half: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut total = [0; 3];
    for one in all {
        let half = by_half.entry(&one.half).or_default();
        for counts in [half, &mut total] {
            counts[0] += 1;
            counts[1] += usize::from(one.plain == one.starts);
            counts[2] += usize::from(one.start == one.starts);
        }
    }
    let confinement = all.iter().filter(|one| one.is_confinement());
    let (found, missed): (Vec<_>, Vec<_>) = confinement.partition(|one| !one.start);
    let mut section = format!(
        "\n## The start of Vector\n\n\
         `lockstep vector validate` without and with `--start` versus `vector validate --skip-healthchecks`, which \
         also builds each component, on {} recorded configurations. What `--start` does not report is a known gap \
         ([known gaps](pipelines.md#known-gaps)).\n\n\
         | Vector | configurations | equal without `--start` | equal with `--start` |\n|---|---|---|---|\n",
        all.len()
    );
    let words = [
        ("starts", "starts"),
        ("load", "rejects it while it loads"),
        ("build", "rejects it while it builds components"),
        ("start", "ends right after its start"),
    ];
    for (half, words) in words {
        let [count, plain, start] = by_half[half];
        section.push_str(&format!("| {words} | {count} | {plain} | {start} |\n"));
    }
    let [count, plain, start] = total;
    section.push_str(&format!("| all | {count} | {plain} | {start} |\n\n"));
    section.push_str(&format!(
        "Of {} configurations that Vector rejects for template confinement, `--start` rejects {}. Of the \
         configurations that start, it rejects only those that are also rejected without it:\n\n",
        found.len() + missed.len(),
        found.len()
    ));
    for one in all.iter().filter(|one| one.starts && !one.plain) {
        section.push_str(&format!("- `{}`\n", one.id));
    }
    section.push_str(
        "\nIt also rejects these, which `vector validate` accepts, and with which Vector ends right after its start. Those with secrets have no backend for them:\n\n",
    );
    for id in ENDS_AFTER_START {
        section.push_str(&format!("- `{id}`\n"));
    }
    section
}

#[test]
fn start_up_errors_agree_with_the_real_vector() {
    let all = compared();
    assert!(all.len() > 8_000, "recorded configurations are missing");
    let ids = |is_wrong: &dyn Fn(&Started) -> bool| -> BTreeSet<&String> {
        let wrong = all.iter().filter(|one| is_wrong(one));
        wrong.map(|one| &one.id).collect()
    };
    let rejected = ids(&|one| one.starts && one.is_refused_at_start());
    assert!(
        rejected.is_empty(),
        "--start rejects configurations that start: {rejected:?}"
    );
    let missed = ids(&|one| one.is_confinement() && one.start);
    assert!(missed.is_empty(), "--start misses confinement: {missed:?}");
    let confined = all.iter().filter(|one| one.is_confinement()).count();
    assert!(
        confined >= 269,
        "{confined} confinement errors are recorded"
    );
    let lost = ids(&|one| !one.plain && one.start);
    assert!(
        lost.is_empty(),
        "--start accepts configurations that are rejected without it: {lost:?}"
    );
    let equal = all.iter().filter(|one| one.start == one.starts).count();
    assert!(equal >= LEAST_EQUAL, "{equal} of {} are equal", all.len());
    crate::assert_page(&section(&all), crate::Part::Start);
}
