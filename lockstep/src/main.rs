//! The `lockstep` program: admission webhook, controllers, offline check and installation manifests.

mod args;
mod check;
mod commands;
mod logging;
mod printer;
mod registry;
mod server;
mod tracing_export;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// A review allocates and frees hundreds of small values. The C library's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Validate Kubernetes custom resources by one set of rules: offline, in the admission webhook and in the
/// controller.
#[derive(Parser)]
#[command(version, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Validate files without a cluster. Exit codes: 0: all objects are valid; 1: at least one object is invalid;
    /// 2: an input could not be read.
    Check(commands::check::Args),
    /// Run the admission webhook over HTTPS.
    #[command(args_override_self = true)]
    Webhook(Box<commands::webhook::Args>),
    /// Run the controllers, and manage the certificates of the webhook.
    #[command(args_override_self = true)]
    Controller(Box<commands::controller::Args>),
    /// Write the YAML files that install Lockstep.
    Manifests(commands::manifests::Args),
    /// List all rules, or explain one.
    Rules(commands::rules::Args),
    /// Validate all stored objects of a cluster, using the current kubeconfig. Exit codes: 0: no object would be
    /// denied; 1: at least one would be denied; 2: the cluster could not be read.
    Audit(commands::audit::Args),
    /// Validate Vector configurations.
    Vector(commands::vector::Args),
    /// Print a shell completion script.
    Completions(commands::shell::CompletionsArgs),
    /// Write manual pages.
    Man(commands::shell::ManArgs),
    /// Start a real Kubernetes control plane on this machine, install Lockstep and apply the examples.
    Dev(commands::dev::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let result = match command {
        Command::Check(args) => return commands::check::run(&args),
        Command::Audit(args) => return commands::audit::run(&args),
        Command::Vector(args) => return commands::vector::run(&args),
        Command::Manifests(args) => commands::manifests::run(&args),
        Command::Completions(args) => commands::shell::completions(&args),
        Command::Man(args) => commands::shell::man(&args),
        Command::Rules(args) => commands::rules::run(&args),
        Command::Webhook(args) => commands::webhook::run(*args),
        Command::Controller(args) => commands::controller::run(*args),
        Command::Dev(args) => commands::dev::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstep: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
