//! Scale test of the controller, compared with the same operator on controller-runtime: thousands of objects, each with
//! three `ConfigMap`s, on a real API server that shares two cores with the operator.

mod batch;
mod implementations;
mod measure;
mod operator;
mod report;
mod shards;
mod slow_operator;

use bench_harness::markdown::MeasuredCommit;
use clap::{Parser, Subcommand};
use lockstep_controller::runtime_builder;
use mimalloc::MiMalloc;
use tokio::runtime::Builder;

use crate::report::Report;

/// The allocator of Lockstep.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Compare the controller with the same operator on controller-runtime.
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
    /// Numbers of objects, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1000,5000,10000")]
    objects: Vec<usize>,
    /// Number of runs; the output contains the median, minimum and maximum.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Print the results as a table in Markdown as well.
    #[arg(long)]
    markdown: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator on the controller of Lockstep.
    #[command(hide = true)]
    Operate(operator::Args),
    /// Compare one replica with several that share the objects by shards, with a slow external system.
    Shards(shards::Args),
    /// Run the operator that waits for a slow external system.
    #[command(hide = true)]
    OperateSlowly(slow_operator::Args),
}

fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = Cli::parse();
    let mut builder = match cli.command {
        None | Some(Command::Shards(_)) => Builder::new_multi_thread(),
        Some(Command::Operate(_) | Command::OperateSlowly(_)) => runtime_builder(),
    };
    builder.enable_all().build()?.block_on(run(cli))
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Some(Command::Operate(args)) => return operator::run(&args).await,
        Some(Command::Shards(args)) => return shards::run(&args).await,
        Some(Command::OperateSlowly(args)) => return slow_operator::run(&args).await,
        None => {}
    }
    let implementations = [
        implementations::lockstep()?,
        implementations::controller_runtime()?,
    ];
    // Before the first run, which takes minutes.
    let measured_commit = MeasuredCommit::current()?;
    let mut report = Report::default();
    for run in 0..cli.args.runs {
        for objects in &cli.args.objects {
            for side in &implementations {
                eprintln!("run {}: {objects} objects, {}", run + 1, side.name);
                let measured = measure::measure(side, *objects).await?;
                report.add(*objects, side.name, measured);
            }
        }
    }
    let names = [implementations[0].name, implementations[1].name];
    report.print(names);
    if cli.args.markdown {
        println!("\n{measured_commit}");
        report.print_markdown(names);
    }
    Ok(())
}
