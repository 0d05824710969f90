//! `lockstep vector`: Vector's own configurations, without a cluster and without Vector.

mod configuration;
mod lines;
mod validate;
mod worker;
pub(crate) mod workers;

use std::process::ExitCode;

use clap::Subcommand;

/// A configuration that Vector would not take: `EX_CONFIG`, as Vector has it.
const REFUSED: u8 = 78;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge configurations as `vector validate --no-environment` does. Exit code 0: it would start with them;
    /// 78: it would not.
    Validate(validate::Args),
    /// Compiles programs for another process.
    #[command(hide = true)]
    VrlWorker,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match &args.command {
        Command::Validate(args) => validate::run(args),
        Command::VrlWorker => worker::run(),
    }
}
