//! Runs of the two benchmarks that count.

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::cases::Case;
use crate::counts::{Costs, Counts};
use crate::environment::PROFILE;

/// Counts the costs of all cases.
///
/// # Errors
///
/// A benchmark fails, or lacks a case.
pub fn measure() -> anyhow::Result<Counts> {
    let mut instructions: BTreeMap<String, u64> = BTreeMap::new();
    for line in run("instructions", &["--output-format=json"])? {
        // The id ends with the position of the case.
        let id = line["id"].as_str().unwrap_or_default();
        let position = id.rsplit('_').next().unwrap_or_default().parse::<usize>();
        let case = Case::ALL[position.with_context(|| format!("unknown case: {line}"))?];
        let count = number(&line, "/profiles/0/data/total/metrics/Ir/values/new")?;
        instructions.insert(case.name(), count);
    }
    let mut counts = Counts::new();
    for line in run("memory", &[])? {
        let case = line["case"].as_str().unwrap_or_default().to_owned();
        let instructions = instructions.get(&case).copied();
        let costs = Costs {
            instructions: instructions.with_context(|| format!("no instructions of {case}"))?,
            allocations: number(&line, "/allocations")?,
            peak_bytes: number(&line, "/peakBytes")?,
        };
        counts.insert(case, costs);
    }
    ensure!(
        counts.len() == Case::ALL.len(),
        "cases are missing: {counts:?}"
    );
    Ok(counts)
}

/// Runs a benchmark of this package and returns the JSON objects that it prints.
///
/// The whole workspace is selected, so that its libraries have the features with which the tests have compiled them.
fn run(benchmark: &str, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--workspace", "--locked", "--profile", PROFILE])
        .args(["--bench", benchmark, "--"])
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not run")?;
    ensure!(
        output.status.success(),
        "the benchmark {benchmark} failed: {}",
        output.status
    );
    let text = String::from_utf8(output.stdout)?;
    let objects = text.lines().filter(|line| line.starts_with('{'));
    let objects = objects.map(|line| serde_json::from_str(line).with_context(|| line.to_owned()));
    objects.collect()
}

fn number(line: &Value, pointer: &str) -> anyhow::Result<u64> {
    let number = line.pointer(pointer).and_then(Value::as_u64);
    number.with_context(|| format!("no number at {pointer}: {line}"))
}
