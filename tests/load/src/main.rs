//! Measures the gate beside a webhook of controller-runtime with the same Rust rules, and beside the least
//! that a server can do.
//!
//! Each server has the first core and whoever asks the second; all have the same certificate and get the
//! same reviews, over HTTP/1.1, as an API server asks a Service. The gate judges all three layers, or where
//! somebody vouches for the CRD only the rules that a schema cannot say, as the peer does. The floor reads
//! both objects and judges nothing; the scan does not even read them.

mod client;
mod floor;
mod report;
mod reviews;
mod servers;
mod vouching;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

use crate::client::Measured;
use crate::report::{Report, Row};
use crate::reviews::Review;
use crate::servers::{Program, Running};

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
        None => compare(&cli.args),
    }
}

fn compare(args: &Args) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        cores >= 2,
        "one core for the server and one for who asks: there is but {cores}"
    );
    let directory = tempfile::tempdir()?;
    write_all(directory.path())?;
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
        let measured = ask(&server, scenario, causes, directory, args)?;
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

const WARM_UP_MS: u32 = 500;

fn ask(
    server: &Running,
    scenario: Scenario,
    causes: usize,
    directory: &Path,
    args: &Args,
) -> anyhow::Result<Measured> {
    let body = directory.join(format!("{}.json", scenario.review.name()));
    let mut asking = Process::new("taskset");
    asking
        .args(["--cpu-list", "1"])
        .arg(std::env::current_exe()?)
        .arg("ask")
        .arg(format!("--server={}", server.address))
        .arg("--ca")
        .arg(directory.join("ca.crt"))
        .arg("--body")
        .arg(body)
        .arg(format!("--causes={causes}"))
        .arg(format!("--connections={}", scenario.connections))
        .arg(format!("--warm-up-ms={WARM_UP_MS}"))
        .arg(format!("--measure-ms={}", args.measure_ms));
    if scenario.new_connections {
        asking.arg("--new-connections");
    }
    let output = asking.output().context("taskset")?;
    ensure!(
        output.status.success(),
        "{}: {}",
        scenario.name(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn write_all(directory: &Path) -> anyhow::Result<()> {
    for scenario in SCENARIOS {
        scenario.review.write(directory)?;
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
