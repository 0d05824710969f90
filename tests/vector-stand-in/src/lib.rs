//! Stand-in for Vector in tests on a real node, where Vector itself cannot be had.
//!
//! ```text
//! directory ─► files ─► secrets ─► validation ─► running configuration ─► reports
//!     └──────── watch ────────────────┘
//! ```
//!
//! It loads and reloads its configuration as Vector 0.57 does, and moves no events: its components are validated, not
//! run. Where Vector builds a component, the stand-in runs `lockstep vector validate --start`, which must be in the same
//! image.
//!
//! # Guarantees
//!
//! - It does not start with an invalid configuration, and its exit code is then that of Vector.
//! - With `--watch-config`, it reloads after a change once no file has changed for a second. It keeps the running
//!   configuration if the new one is invalid, or differs in an option that Vector does not reload.
//! - `validate` accepts a configuration with which it starts, apart from the values of secrets, which it does not read. For
//!   another one, it prints the error and exits with the code of Vector.
//! - A reload that changes a sink whose server cannot be reached waits for the sink, as Vector does, which sends first what is in
//!   its buffers (`shutdown_diff` in `src/topology/running.rs`). Later changes wait, too.
//! - A source `demo_logs` with a `count`, and a console behind it, print their first line once their configuration runs.
//! - `/health` is served if the API is enabled. [`REPORTS`] serves the running configuration. No value of a secret is
//!   part of it.

mod args;
mod configuration;
mod log;
mod reports;
mod running;
mod secrets;
mod server;
pub mod start;
mod stuck;
mod validator;
mod watcher;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Args, Command, RunArgs};
use crate::running::Process;
pub use crate::server::REPORTS;
pub use crate::validator::MISSING_SINK;

/// Exit code of Vector for an invalid configuration (`EX_CONFIG` of `sysexits.h`).
const INVALID_CONFIGURATION: u8 = 78;

/// Runs until SIGTERM, or validates a configuration, with the command line of Vector.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(args);
    let ended = match (args.command, args.run) {
        (Some(Command::Validate(args)), _) => validate(&args.config_dir),
        (None, Some(args)) => serve_until_sigterm(args),
        (None, None) => unreachable!("the parser requires the options if there is no subcommand"),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(INVALID_CONFIGURATION)
        }
    }
}

/// Validates the configuration of a directory. The values of its secrets are not read.
fn validate(directory: &Path) -> anyhow::Result<()> {
    let configuration = configuration::read(directory)?;
    validator::validate(directory, &configuration)?;
    println!("Validated");
    Ok(())
}

fn serve_until_sigterm(args: RunArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: RunArgs) -> anyhow::Result<()> {
    // The first process of a container ends by a signal only if it handles it.
    let mut terminated = signal(SignalKind::terminate())?;
    // Before the files are read, so that no change is missed.
    let directory = args.config_dir;
    let changes = args.watch_config.then(|| watcher::watch(&directory));
    let changes = changes.transpose()?;
    let process = Arc::new(Process::start(directory).await?);
    server::start(&process).await?;
    if let Some(mut changes) = changes {
        let process = Arc::clone(&process);
        tokio::spawn(async move {
            while changes.recv().await.is_some() {
                process.reload().await;
            }
        });
    }
    terminated.recv().await;
    Ok(())
}
