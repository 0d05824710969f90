//! Measures the loop beside the same operator in controller-runtime: thousands of objects, each with three
//! `ConfigMap`s, on a real API server that both share two cores with.

mod audit;
mod batch;
mod measure;
mod operator;
mod report;
mod sides;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::report::Report;

/// The same as Lockstep's own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measures the loop beside the same operator in controller-runtime.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    args: Args,
}

#[derive(clap::Args)]
struct Args {
    /// How many objects.
    #[arg(long, value_delimiter = ',', default_value = "1000,5000,10000")]
    objects: Vec<usize>,
    /// How often everything is measured; medians are printed, with the least and the most.
    #[arg(long, default_value_t = 1)]
    runs: usize,
}

#[derive(Subcommand)]
enum Command {
    /// Is the operator on Lockstep's loop.
    #[command(hide = true)]
    Operate(operator::Args),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    if let Some(Command::Operate(args)) = cli.command {
        return operator::run(&args).await;
    }
    let sides = [sides::lockstep()?, sides::controller_runtime()?];
    let mut report = Report::default();
    for run in 0..cli.args.runs {
        for objects in &cli.args.objects {
            for side in &sides {
                eprintln!("run {}: {objects} objects, {}", run + 1, side.name);
                let measured = measure::measure(side, *objects).await?;
                report.add(*objects, side.name, measured);
            }
        }
    }
    report.print([sides[0].name, sides[1].name]);
    Ok(())
}
