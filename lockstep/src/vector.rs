//! `lockstep vector`: validation of Vector configurations, without a cluster and without Vector.

pub(crate) mod compilers;
pub(crate) mod configuration;
#[cfg(not(unix))]
mod in_process;
pub(crate) mod lines;
#[cfg(unix)]
mod pool;
mod problems;
mod report;
pub(crate) mod validate;
#[cfg(unix)]
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::vector::report::Color;

/// Validate Vector configurations.
#[derive(Parser)]
#[command(name = "vector")]
pub(crate) struct Args {
    #[command(flatten)]
    common: CommonArgs,
    #[command(subcommand)]
    command: Command,
}

/// Arguments that Vector accepts before its subcommand.
#[derive(clap::Args)]
pub(crate) struct CommonArgs {
    /// When to use colors.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        env = "VECTOR_COLOR",
        global = true
    )]
    color: Color,
    /// Replace environment variables (`$NAME`, `${NAME}`) in the text of the files.
    #[arg(
        long,
        env = "VECTOR_DANGEROUSLY_ALLOW_ENV_VAR_INTERPOLATION",
        global = true
    )]
    dangerously_allow_env_var_interpolation: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Validate configurations as `vector validate --no-environment` does. Exit codes: 0: Vector would start with
    /// them; 78: it would not.
    Validate(validate::Args),
    /// Run a VRL worker, which compiles VRL programs for another process.
    #[cfg(unix)]
    #[command(hide = true)]
    VrlWorker,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match &args.command {
        Command::Validate(validate) => validate::run(validate, &args.common),
        #[cfg(unix)]
        Command::VrlWorker => worker::run(),
    }
}
