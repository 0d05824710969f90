//! Load test of the webhook, compared with two controller-runtime webhooks, of which one has ten of the Rust rules and the
//! other one has all, and with a minimal server.
//!
//! Each server runs on the first core and the client on the second. All servers have the same certificate and get the
//! same reviews, over HTTP/1.1, as an API server sends them to a Service. The webhook validates all three layers. If
//! the CRD is reported as current, it validates only the rules that a schema cannot express, as the peers do. The
//! baseline server parses both objects without validation. The scan server does not even parse them.

mod baseline;
mod client;
mod crd_status;
mod loadgen;
mod pipelines;
mod report;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use bench_harness::Review;
use bench_harness::markdown::MeasuredCommit;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use tempfile::TempDir;

use crate::client::{Measured, NAME};
use crate::loadgen::{LoadGenerator, WARM_UP_MS, Workload};
use crate::report::{Report, Row};
use crate::servers::Program;

/// The allocator of the webhook, so that the baseline server differs only in its work.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Compare the load capacity of the webhook with that of a controller-runtime webhook.
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
    /// Number of runs; the output contains the median, minimum and maximum.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Duration of each measurement in milliseconds, after a warm-up of half a second.
    #[arg(long, default_value_t = 2_000)]
    measure_ms: u32,
    /// Print the tables of the documentation in Markdown, too.
    #[arg(long)]
    markdown: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run the minimal server.
    #[command(hide = true)]
    Baseline(baseline::Args),
    /// Send reviews to one server and print the latencies.
    #[command(hide = true)]
    Send(client::Args),
    /// Measure the validation of Vector pipelines.
    Pipelines(pipelines::Args),
    /// Write the reviews and the certificate into a folder, for manual requests.
    Write {
        /// Target folder.
        folder: PathBuf,
    },
}

/// Review and connections of one measurement.
#[derive(Clone, Copy)]
struct Scenario {
    review: Review,
    connections: usize,
    new_connections: bool,
}

const SCENARIOS: [Scenario; 7] = [
    Scenario::persistent(Review::Small, 32),
    // Immediately after the scenario that it is compared with.
    Scenario::persistent(Review::Denied, 32),
    Scenario::persistent(Review::Typical, 1),
    Scenario::persistent(Review::Typical, 32),
    Scenario::persistent(Review::Typical, 256),
    Scenario::persistent(Review::Large, 32),
    Scenario {
        new_connections: true,
        ..Scenario::persistent(Review::Typical, 8)
    },
];

impl Scenario {
    const fn persistent(review: Review, connections: usize) -> Self {
        Self {
            review,
            connections,
            new_connections: false,
        }
    }

    fn name(self) -> String {
        let connections = if self.new_connections {
            "new".to_owned()
        } else {
            self.connections.to_string()
        };
        format!("{}, {connections}", self.review.name())
    }
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    match cli.command {
        Some(Command::Baseline(args)) => baseline::serve(&args),
        Some(Command::Send(args)) => client::run(&args),
        Some(Command::Write { folder }) => write_all(&folder),
        Some(Command::Pipelines(args)) => {
            let directory = prepare()?;
            pipelines::compare(&args, directory.path())
        }
        None => compare(&cli.args),
    }
}

/// Creates a folder with the reviews and the certificate.
fn prepare() -> anyhow::Result<TempDir> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        cores >= 2,
        "two cores are required, one for the server and one for the client; this machine has {cores}"
    );
    let directory = tempfile::tempdir()?;
    write_all(directory.path())?;
    Ok(directory)
}

fn compare(args: &Args) -> anyhow::Result<()> {
    // Later commits are not in the programs that are built now.
    let measured = MeasuredCommit::current()?;
    let directory = prepare()?;
    let programs = [
        servers::lockstep()?,
        servers::lockstep_vouched_for()?,
        servers::controller_runtime()?,
        servers::controller_runtime_all_rules()?,
        servers::baseline()?,
        servers::scan()?,
    ];
    let mut report = Report::default();
    for run in 0..args.runs {
        for program in &programs {
            eprintln!("run {} of {}: {}", run + 1, args.runs, program.name);
            measure(program, directory.path(), args, &mut report)?;
        }
    }
    report.print();
    if args.markdown {
        println!();
        report.print_markdown(&measured);
    }
    Ok(())
}

fn measure(
    program: &Program,
    directory: &Path,
    args: &Args,
    report: &mut Report,
) -> anyhow::Result<()> {
    let server = program.start(directory)?;
    server.wait_until_idle()?;
    report.started(program.name, server.start_up, &server.memory()?);
    for scenario in SCENARIOS {
        if scenario.review == Review::Denied && !program.validates_all_layers() {
            continue;
        }
        let cpu = server.cpu()?;
        let causes = match scenario.review {
            Review::Denied => program.causes,
            _ => 0,
        };
        let workload = Workload {
            review: scenario.review,
            connections: scenario.connections,
            new_connections: scenario.new_connections,
            is_new: false,
            causes,
            measure_ms: args.measure_ms,
        };
        let measured = LoadGenerator::begin(&server, workload, directory)?.end()?;
        let row = Row {
            // The requests of the warm-up used CPU time as well.
            cpu_us: (server.cpu()? - cpu) * 1e6 / per_run(&measured, args),
            peak_mib: server.memory()?.peak,
            measured,
        };
        report.add(program.name, &scenario.name(), row);
    }
    Ok(())
}

/// Estimates the number of responses including those of the warm-up.
fn per_run(measured: &Measured, args: &Args) -> f64 {
    let whole = f64::from(args.measure_ms + WARM_UP_MS) / f64::from(args.measure_ms);
    f64::from(measured.responses) * whole
}

fn write_all(directory: &Path) -> anyhow::Result<()> {
    for review in Review::ALL {
        review.write(directory)?;
    }
    write_keys(directory)
}

fn write_keys(directory: &Path) -> anyhow::Result<()> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = made.cert.pem();
    // The certificate is its own CA: the client trusts only this certificate.
    fs::write(directory.join("ca.crt"), &certificate)?;
    fs::write(directory.join("tls.crt"), &certificate)?;
    fs::write(directory.join("tls.key"), made.signing_key.serialize_pem())?;
    Ok(())
}
