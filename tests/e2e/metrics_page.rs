//! The page `docs/metrics.md`, compared with the metrics that the processes really export.
//!
//! With `LOCKSTEP_UPDATE=1`, the tests write what they find into the page. A metric that no process exported during the
//! test keeps its line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::env::root;

/// Start of the table.
const HEADER: &str = "| metric | type | labels | process | description |\n|---|---|---|---|---|\n";

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
    processes: BTreeSet<String>,
    help: String,
}

/// Compares the page with the metrics of a process, in the exposition format.
pub fn compare(process: &str, exposition: &str) {
    let found = parse(process, exposition);
    assert!(found.len() > 5, "{exposition}");
    let path = root().join("docs/metrics.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (introduction, table) = page.split_once(HEADER).expect("the table");
    let mut documented: BTreeMap<_, _> = table.lines().filter_map(row).collect();
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        for (name, metric) in found {
            let row = documented.entry(name).or_default();
            row.labels.extend(metric.labels);
            row.processes.extend(metric.processes);
            (row.kind, row.help) = (metric.kind, metric.help);
        }
        let rows: String = documented.iter().map(print).collect();
        fs::write(path, format!("{introduction}{HEADER}{rows}")).expect("the page is written");
        return;
    }
    for (name, metric) in found {
        let row = documented.get(&name).cloned().unwrap_or_default();
        assert!(
            row.kind == metric.kind
                && row.help == metric.help
                && row.labels.is_superset(&metric.labels)
                && row.processes.contains(process),
            "docs/metrics.md is not current, run the test with LOCKSTEP_UPDATE=1:\n{name}: {metric:?}\n{row:?}"
        );
    }
}

/// Reads the metrics of a process. Counters have the names of their samples, with the suffix `_total`.
fn parse(process: &str, exposition: &str) -> BTreeMap<String, Metric> {
    let mut all: BTreeMap<String, Metric> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helps: BTreeMap<&str, &str> = BTreeMap::new();
    for line in exposition.lines() {
        if let Some((name, help)) = line
            .strip_prefix("# HELP ")
            .and_then(|it| it.split_once(' '))
        {
            helps.insert(name, help.trim_end_matches('.'));
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|it| it.split_once(' '))
        {
            kinds.insert(name, kind);
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let family = ["_total", "_bucket", "_sum", "_count"].iter();
            let family = family
                .filter_map(|suffix| name.strip_suffix(suffix))
                .find(|family| kinds.contains_key(family))
                .unwrap_or(name);
            let kind = kinds.get(family).copied().unwrap_or_default();
            let shown = if kind == "counter" { name } else { family };
            let metric = all.entry(shown.to_owned()).or_default();
            kind.clone_into(&mut metric.kind);
            let help = helps.get(family).copied().unwrap_or_default();
            help.clone_into(&mut metric.help);
            metric.processes.insert(process.to_owned());
            metric.labels.extend(labels(line));
        }
    }
    all
}

/// Returns the names of the labels of a sample, without the bound of a bucket.
fn labels(sample: &str) -> Vec<String> {
    let inside = sample.split_once('{').map_or("", |(_, rest)| rest);
    let names = regex::Regex::new(r#"([a-z_]+)="(?:[^"\\]|\\.)*""#).expect("a pattern");
    let names = names.captures_iter(inside).map(|found| found[1].to_owned());
    names.filter(|name| name != "le").collect()
}

fn print((name, metric): (&String, &Metric)) -> String {
    let labels: Vec<_> = metric
        .labels
        .iter()
        .map(|label| format!("`{label}`"))
        .collect();
    let processes: Vec<_> = metric.processes.iter().cloned().collect();
    format!(
        "| `{name}` | {} | {} | {} | {} |\n",
        metric.kind,
        labels.join(", "),
        processes.join(", "),
        metric.help
    )
}

fn row(line: &str) -> Option<(String, Metric)> {
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let [_, name, kind, labels, processes, help, _] = cells[..] else {
        return None;
    };
    let list = |cell: &str| -> BTreeSet<String> {
        let items = cell.split(',').map(|item| item.trim().trim_matches('`'));
        items
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let metric = Metric {
        kind: kind.to_owned(),
        labels: list(labels),
        processes: list(processes),
        help: help.to_owned(),
    };
    Some((name.trim_matches('`').to_owned(), metric))
}

#[test]
fn every_metric_of_the_page_exists_in_the_program() {
    let mut sources = String::new();
    for folder in [
        "certs",
        "controller",
        "http-server",
        "lockstep",
        "operators/cloud-database/cli",
        "operators/cloud-database/controller",
        "operators/vector/controller",
        "sdk",
        "watch",
        "webhook",
        "webhook-lifecycle",
    ] {
        read_sources(&root().join(folder).join("src"), &mut sources);
    }
    let page = fs::read_to_string(root().join("docs/metrics.md")).expect("the page");
    let rows: Vec<_> = page.lines().filter_map(row).skip(2).collect();
    assert!(rows.len() > 20, "{rows:?}");
    for (name, metric) in rows {
        let registered = name.trim_end_matches("_total");
        let (quoted, help) = (format!("\"{registered}\""), format!("\"{}\"", metric.help));
        assert!(
            sources.contains(&quoted) && sources.contains(&help),
            "{name} of docs/metrics.md does not exist, or has another description"
        );
    }
}

fn read_sources(folder: &Path, sources: &mut String) {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    for path in paths {
        if path.is_dir() {
            read_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).expect("a source file"));
        }
    }
}
