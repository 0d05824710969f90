//! Run of the benchmark under callgrind.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::counts::Counts;
use crate::environment::PROFILE;

/// Runs the benchmark and returns the instructions of each review.
///
/// The whole workspace is selected, so that its libraries have the features with which the tests have compiled them.
pub(crate) fn measure() -> anyhow::Result<Counts> {
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--workspace", "--locked", "--bench", "costs"])
        .args(["--profile", PROFILE, "--", "--output-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not run")?;
    ensure!(
        output.status.success(),
        "the benchmark failed: {}",
        output.status
    );
    let text = String::from_utf8(output.stdout)?;
    let summaries = text.lines().filter(|line| line.starts_with('{'));
    let counts: Counts = summaries.map(count).collect::<anyhow::Result<_>>()?;
    ensure!(!counts.is_empty(), "the benchmark has no results: {text}");
    Ok(counts)
}

/// Returns the name and the instructions of one summary.
fn count(line: &str) -> anyhow::Result<(String, u64)> {
    let summary: Value = serde_json::from_str(line)?;
    let text = |name: &str| summary[name].as_str().unwrap_or_default().to_owned();
    let instructions = summary.pointer("/profiles/0/data/total/metrics/Ir/values/new");
    let Some(instructions) = instructions.and_then(Value::as_u64) else {
        bail!("the summary has no number of instructions: {line}");
    };
    let name = format!("{} {}", text("function_name"), text("id"));
    Ok((name, instructions))
}
