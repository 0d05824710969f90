//! Runs of the two benchmarks that count.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use bench_harness::{cargo, root};
use serde_json::Value;

use crate::cases::Case;
use crate::counts::{Costs, Counts};
use crate::environment::PROFILE;

/// Program in which the instructions are counted, with its arguments. The package is its working directory. The counts of all
/// threads are zero when a case begins: `check` validates on threads of its own.
const CALLGRIND: &str = "valgrind --quiet --tool=callgrind \
    --zero-before=*instructions::counted* --dump-before=*instructions::finished* \
    --callgrind-out-file=../../target/costs/callgrind.out";

/// Counts the costs of all cases.
///
/// # Errors
///
/// A benchmark fails, or lacks a case.
pub fn measure() -> anyhow::Result<Counts> {
    let mut instructions = instructions()?;
    let mut counts = Counts::new();
    for line in run("memory", None)?
        .lines()
        .filter(|line| line.starts_with('{'))
    {
        let line: Value = serde_json::from_str(line)?;
        let number = |name: &str| {
            let number = line[name].as_u64();
            number.with_context(|| format!("`{name}` is missing: {line}"))
        };
        let case = line["case"].as_str().unwrap_or_default().to_owned();
        let instructions = instructions.remove(&case);
        let costs = Costs {
            instructions: instructions.with_context(|| format!("no instructions of {case}"))?,
            allocations: number("allocations")?,
            peak_bytes: number("peakBytes")?,
        };
        counts.insert(case, costs);
    }
    ensure!(
        counts.len() == Case::ALL.len(),
        "cases are missing: {counts:?}"
    );
    Ok(counts)
}

/// Returns the number of instructions by case. callgrind writes a file for each.
fn instructions() -> anyhow::Result<BTreeMap<String, u64>> {
    let folder = root().join("target/costs");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    run("instructions", Some(CALLGRIND))?;
    let counts = (1..).zip(Case::ALL).map(|(position, case)| {
        let path = folder.join(format!("callgrind.out.{position}"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut totals = text
            .lines()
            .filter_map(|line| line.strip_prefix("totals: "));
        let total = totals.next().context("a file of callgrind has no total")?;
        Ok((case.name(), total.trim().parse()?))
    });
    counts.collect()
}

/// Runs a benchmark of this package, in another program if any, and returns its output.
///
/// The whole workspace is selected, so that its libraries have the features with which the tests have compiled them.
fn run(benchmark: &str, runner: Option<&str>) -> anyhow::Result<String> {
    let mut command = cargo();
    command
        .args(["bench", "--workspace", "--locked", "--profile", PROFILE])
        .args(["--bench", benchmark]);
    if let Some(runner) = runner {
        let target = host_target()?.replace('-', "_").to_uppercase();
        command.env(format!("CARGO_TARGET_{target}_RUNNER"), runner);
    }
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cargo does not run")?;
    ensure!(
        output.status.success(),
        "the benchmark {benchmark} failed: {}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the target for which cargo builds.
fn host_target() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output();
    let text = String::from_utf8(output.context("rustc does not run")?.stdout)?;
    let mut targets = text.lines().filter_map(|line| line.strip_prefix("host: "));
    let target = targets.next().context("rustc does not print its host")?;
    Ok(target.to_owned())
}
