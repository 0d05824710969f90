//! Measurement of a program: wall time, CPU time, peak memory.
//!
//! A separate process starts the program. The kernel reports the peak memory of all ended children together, so that
//! this process may start only one. The memory of the parent at the start counts for the child, so that this process
//! must be small.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// File for the standard output of the program.
    #[arg(long)]
    stdout: PathBuf,
    /// File for the standard error of the program.
    #[arg(long)]
    stderr: PathBuf,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<String>,
}

/// Resource usage of one run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_kib: f64,
    /// Exit code.
    pub(crate) code: Option<i32>,
}

/// One run and its result.
pub(crate) struct Run {
    pub(crate) usage: Usage,
    /// Number of documents that the program reports as invalid.
    pub(crate) invalid: usize,
}

/// Runs a program and prints its resource usage.
#[allow(
    clippy::cast_precision_loss,
    reason = "microseconds and KiB are far below 2^52"
)]
pub(crate) fn measure(args: &Args) -> anyhow::Result<()> {
    let [program, arguments @ ..] = args.program.as_slice() else {
        unreachable!("clap requires a program");
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(File::create(&args.stdout)?)
        .stderr(File::create(&args.stderr)?);
    let started = Instant::now();
    let status = command.status().with_context(|| program.clone())?;
    let wall_seconds = started.elapsed().as_secs_f64();
    let children = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = children.user_time() + children.system_time();
    let usage = Usage {
        wall_seconds,
        cpu_seconds: cpu.num_microseconds() as f64 / 1e6,
        peak_kib: children.max_rss() as f64,
        code: status.code(),
    };
    println!("{}", serde_json::to_string(&usage)?);
    Ok(())
}

/// Measures a program in a separate process.
pub(crate) fn run(command: &[String], stdout: &Path, stderr: &Path) -> anyhow::Result<Usage> {
    let output = Command::new(std::env::current_exe()?)
        .arg("measure")
        .arg("--stdout")
        .arg(stdout)
        .arg("--stderr")
        .arg(stderr)
        .arg("--")
        .args(command)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "cannot measure {}", command[0]);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Median, minimum and maximum of the measurements.
pub(crate) struct Spread {
    least: f64,
    pub(crate) median: f64,
    most: f64,
}

impl Spread {
    /// Computes the spread of at least one value.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Self {
            least: values[0],
            median,
            most: values[values.len() - 1],
        }
    }

    pub(crate) fn show(&self, unit: &str) -> String {
        let Self {
            least,
            median,
            most,
        } = self;
        format!("{median:.1} {unit} ({least:.1}..{most:.1})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_the_two_middle_values() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(spread.show("ms"), "2.0 ms (1.0..3.0)");
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!(spread.show("ms"), "2.5 ms (1.0..4.0)");
    }
}
