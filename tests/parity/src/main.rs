//! Comparison of the rules engine with an API server.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lockstep_shared_validation::{CrdValidator, Validator};
use parity::Summary;
use parity::files::{read_cases, read_crd};
use parity::live::{self, Extent};
use serde_json::Value;

/// Compare the rules engine with the API server on objects of any CRD.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare with recorded responses.
    Recorded {
        /// File with the `CustomResourceDefinition`.
        #[arg(long)]
        crd: PathBuf,
        /// File with the cases, one JSON object per line, as written by `live --record`.
        #[arg(long)]
        cases: PathBuf,
    },
    /// Start an API server and compare on random objects.
    Live {
        /// File with the `CustomResourceDefinition`.
        #[arg(long)]
        crd: PathBuf,
        /// Number of new objects.
        #[arg(long, default_value_t = 2000)]
        objects: usize,
        /// Number of changes of stored objects.
        #[arg(long, default_value_t = 1000)]
        changes: usize,
        /// Seed of the random objects. The same seed gives the same objects.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Write every case with the response of the API server to this file.
        #[arg(long)]
        record: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("parity: {error:#}");
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command) -> anyhow::Result<bool> {
    let (resource, cases) = match command {
        Command::Recorded { crd, cases } => (resource(&read_crd(&crd)?)?, read_cases(&cases)?),
        Command::Live {
            crd,
            objects,
            changes,
            seed,
            record,
        } => {
            let crd = read_crd(&crd)?;
            let resource = resource(&crd)?;
            println!("seed {seed}");
            let extent = Extent {
                objects,
                changes,
                seed,
            };
            let recorded = live::record_responses(&crd, resource.version(), extent).await?;
            for rule in &recorded.left_out {
                println!("left out, because the API server lacks its functions: {rule}");
            }
            let (cases, resource) = (recorded.cases, recorded.validator);
            if let Some(path) = record {
                let mut file = fs::File::create(&path)?;
                for case in &cases {
                    writeln!(file, "{}", serde_json::to_string(case)?)?;
                }
            }
            (resource, cases)
        }
    };
    let mut summary = Summary::default();
    for case in &cases {
        summary.count(case, &resource)?;
    }
    println!("{summary}");
    Ok(summary.is_equal())
}

fn resource(crd: &Value) -> anyhow::Result<CrdValidator> {
    let mut served = CrdValidator::compile_served(crd)?;
    Ok(served.remove(0))
}
