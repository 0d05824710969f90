//! Comparison of one operator that is written three times: on the SDK, on kube and on controller-runtime. Each runs on a
//! real control plane, while objects are created, edited, left alone and deleted.

mod behaviour;
mod lines;
mod measure;
mod names;
mod operators;
mod phase;
mod provider;
mod records;
mod report;

use std::collections::BTreeMap;

use clap::Parser;

use crate::report::Report;

/// Compare the operator on the SDK with those on kube and on controller-runtime.
#[derive(Parser)]
struct Args {
    /// Number of objects.
    #[arg(long, default_value_t = 1_000)]
    objects: usize,
    /// Number of runs; the output contains the median, minimum and maximum.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Interval of the resynchronizations in seconds. All objects must be created and edited within it.
    #[arg(long, default_value_t = 120)]
    resync_seconds: u64,
    /// Count only the lines of code.
    #[arg(long)]
    lines_only: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    lines::print()?;
    if args.lines_only {
        return Ok(());
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let operators = operators::build()?;
    let mut runs: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for run in 0..args.runs {
        for at in 0..operators.len() {
            // Each operator is first, second and last in turn.
            let operator = &operators[(at + run) % operators.len()];
            eprintln!("run {}: {}", run + 1, operator.name);
            let phases = measure::measure(operator, args.objects, args.resync_seconds);
            let phases = Box::pin(phases).await?;
            runs.entry(operator.name).or_default().push(phases);
        }
        // What is measured so far survives a failure of a later run.
        let (objects, measured) = (args.objects, runs);
        let report = Report {
            objects,
            runs: measured,
        };
        println!("\nafter run {}", run + 1);
        report.print();
        runs = report.runs;
    }
    Ok(())
}
