//! `lockstep rds`: what RDS offers, without a cluster and without AWS.

mod catalogue;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Work with catalogues of what RDS offers.
#[derive(Parser)]
#[command(name = "rds")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the catalogue of an account and region from the output of `aws rds describe-db-engine-versions` and `aws rds
    /// describe-orderable-db-instance-options`. With it, databases are validated by what RDS offers there.
    Catalogue(catalogue::Args),
}

/// Runs the subcommand.
pub fn run(args: &Args) -> ExitCode {
    match &args.command {
        Command::Catalogue(catalogue) => catalogue::run(catalogue),
    }
}
