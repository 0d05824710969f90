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
//! - `/health` is served if the API is enabled. [`REPORTS`] serves the running configuration. No value of a secret is
//!   part of it.

mod args;
mod configuration;
mod running;
mod secrets;
mod server;
mod validator;
mod watcher;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::running::Process;
pub use crate::server::REPORTS;

/// Exit code of Vector for an invalid configuration (`EX_CONFIG` of `sysexits.h`).
const INVALID_CONFIGURATION: u8 = 78;

/// Runs until SIGTERM, with the command line of Vector.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(args);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let ended = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(serve(args)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(INVALID_CONFIGURATION)
        }
    }
}

async fn serve(args: Args) -> anyhow::Result<()> {
    // The first process of a container ends by a signal only if it handles it.
    let mut terminated = signal(SignalKind::terminate())?;
    // Before the files are read, so that no change is missed.
    let changes = args.watch_config.then(|| watcher::watch(&args.config_dir));
    let changes = changes.transpose()?;
    let process = Arc::new(Process::start(args.config_dir).await?);
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
