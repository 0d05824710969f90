//! What a program takes: wall time, CPU time, peak memory.
//!
//! A process of its own starts the program. The kernel tells the peak of all children that have ended,
//! so there must be but one; and it counts for a child what its parent held when it was started, so
//! the parent must be small.

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
    /// Where what the program prints goes.
    #[arg(long)]
    stdout: PathBuf,
    /// Where its messages go.
    #[arg(long)]
    stderr: PathBuf,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<String>,
}

/// What one run took.
#[derive(Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_kib: f64,
    /// The exit code.
    pub(crate) code: Option<i32>,
}

/// One run and what it found.
pub(crate) struct Run {
    pub(crate) usage: Usage,
    /// How many documents the program calls invalid.
    pub(crate) invalid: usize,
}

/// Runs a program and prints what it took.
#[allow(
    clippy::cast_precision_loss,
    reason = "neither microseconds nor KiB come near 2^52"
)]
pub(crate) fn measure(args: &Args) -> anyhow::Result<()> {
    let [program, arguments @ ..] = args.program.as_slice() else {
        unreachable!("a program is required");
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

/// Has another process do so.
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
    ensure!(
        output.status.success(),
        "{}: cannot be measured",
        command[0]
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The middle and the ends of what was measured.
pub(crate) struct Spread {
    least: f64,
    pub(crate) median: f64,
    most: f64,
}

impl Spread {
    /// Of at least one value.
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
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(spread.show("ms"), "2.0 ms (1.0..3.0)");
        let spread = Spread::of([4.0, 1.0, 2.0, 3.0].into_iter());
        assert_eq!(spread.show("ms"), "2.5 ms (1.0..4.0)");
    }
}
