//! Measures the gate beside a webhook of controller-runtime with the same Rust rules, and beside the least
//! that a server can do.
//!
//! Each server has the first core and whoever asks the second; all have the same certificate and get the
//! same reviews, over HTTP/1.1, as an API server asks a Service. The gate judges all three layers, or where
//! somebody vouches for the CRD only the rules that a schema cannot say, as the peer does. The floor reads
//! both objects and judges nothing; the scan does not even read them.

mod asking;
mod client;
mod floor;
mod pipelines;
mod report;
mod reviews;
mod servers;
mod vouching;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use tempfile::TempDir;

use crate::asking::{Asking, Question, WARM_UP_MS};
use crate::client::Measured;
use crate::report::{Report, Row};
use crate::reviews::Review;
use crate::servers::Program;

/// What the certificate is valid for.
const NAME: &str = "lockstep-webhook.lockstep-system.svc";

/// The same as the gate's: the floor is to differ from it in what it does.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measures the gate beside a webhook of controller-runtime.
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
    /// How often everything is measured; medians are printed, with the least and the most.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// How long each measurement takes, after half a second that is not counted.
    #[arg(long, default_value_t = 2_000)]
    measure_ms: u32,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the least that a server can do.
    #[command(hide = true)]
    Floor(floor::Args),
    /// Asks one server.
    #[command(hide = true)]
    Ask(client::Args),
    /// Measures pipelines of Vector.
    Pipelines(pipelines::Args),
    /// Writes the reviews and the keys into a folder, to ask a server by hand.
    Write {
        /// The folder.
        folder: PathBuf,
    },
}

/// What is asked, and by how many.
#[derive(Clone, Copy)]
struct Scenario {
    review: Review,
    connections: usize,
    new_connections: bool,
}

const SCENARIOS: [Scenario; 7] = [
    Scenario::standing(Review::Small, 32),
    // Right after the one that it is compared with.
    Scenario::standing(Review::Refused, 32),
    Scenario::standing(Review::Typical, 1),
    Scenario::standing(Review::Typical, 32),
    Scenario::standing(Review::Typical, 256),
    Scenario::standing(Review::Large, 32),
    Scenario {
        new_connections: true,
        ..Scenario::standing(Review::Typical, 8)
    },
];

impl Scenario {
    const fn standing(review: Review, connections: usize) -> Self {
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
        Some(Command::Floor(args)) => floor::serve(&args),
        Some(Command::Ask(args)) => client::run(&args),
        Some(Command::Write { folder }) => write_all(&folder),
        Some(Command::Pipelines(args)) => {
            let directory = prepare()?;
            pipelines::compare(&args, directory.path())
        }
        None => compare(&cli.args),
    }
}

/// A folder with the reviews and the keys.
fn prepare() -> anyhow::Result<TempDir> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        cores >= 2,
        "one core for the server and one for who asks: there is but {cores}"
    );
    let directory = tempfile::tempdir()?;
    write_all(directory.path())?;
    Ok(directory)
}

fn compare(args: &Args) -> anyhow::Result<()> {
    let directory = prepare()?;
    let programs = [
        servers::lockstep()?,
        servers::lockstep_vouched_for()?,
        servers::controller_runtime()?,
        servers::floor()?,
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
    report.started(program.name, server.start_up, server.memory()?.0);
    for scenario in SCENARIOS {
        if scenario.review == Review::Refused && !program.judges_all() {
            continue;
        }
        let cpu = server.cpu()?;
        let causes = match scenario.review {
            Review::Refused => program.causes,
            _ => 0,
        };
        let question = Question {
            review: scenario.review,
            connections: scenario.connections,
            new_connections: scenario.new_connections,
            is_new: false,
            causes,
            measure_ms: args.measure_ms,
        };
        let measured = Asking::begin(&server, question, directory)?.end()?;
        let row = Row {
            // What is not counted was work as well.
            cpu_us: (server.cpu()? - cpu) * 1e6 / per_run(&measured, args),
            measured,
        };
        report.add(program.name, &scenario.name(), row);
    }
    report.ended(program.name, server.memory()?.1);
    Ok(())
}

/// How many answers there were with those that are not counted, as far as one can tell.
fn per_run(measured: &Measured, args: &Args) -> f64 {
    let whole = f64::from(args.measure_ms + WARM_UP_MS) / f64::from(args.measure_ms);
    f64::from(measured.answers) * whole
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
    // Its own CA: whoever asks trusts this one certificate.
    fs::write(directory.join("ca.crt"), &certificate)?;
    fs::write(directory.join("tls.crt"), &certificate)?;
    fs::write(directory.join("tls.key"), made.signing_key.serialize_pem())?;
    Ok(())
}
