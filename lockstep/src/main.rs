//! The one program: the gate, the controller, the desk and the manifests.

mod admin;
mod audit;
mod check;
mod cluster;
mod controller;
mod crds;
mod desk;
mod dev;
mod keeping;
mod kinds;
mod knocking;
mod limits;
mod logging;
mod manifests;
mod policy;
mod rules;
mod scope;
mod serving;
mod shell;
mod stdout;
mod traces;
mod vector;
mod webhook;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// A review makes and drops hundreds of small values, at which the C library's is slow.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// One set of rules per custom resource: at the desk, at the gate and in the loop.
#[derive(Parser)]
#[command(version, args_override_self = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge files without a cluster. Exit code 0: all stand; 1: something breaks a rule; 2: something
    /// cannot be read.
    Check(check::Args),
    /// Serve admission reviews over HTTPS.
    #[command(args_override_self = true)]
    Webhook(Box<webhook::Args>),
    /// Reconcile, and keep the gate's keys.
    #[command(args_override_self = true)]
    Controller(Box<controller::Args>),
    /// Write every YAML file that a user applies.
    Manifests(manifests::Args),
    /// List and explain every rule.
    Rules(rules::Args),
    /// Judge every object that a cluster holds, with your kubeconfig. Exit code 0: none would be
    /// refused; 1: some would; 2: the cluster cannot be read.
    Audit(audit::Args),
    /// Judge configurations of Vector.
    Vector(vector::Args),
    /// Write completions for a shell to standard output.
    Completions(shell::CompletionsArgs),
    /// Write manual pages.
    Man(shell::ManArgs),
    /// Start a real control plane on this machine with everything in it, and show the examples.
    Dev(dev::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    vector_rules::set_compiler(match command {
        // Whoever asks for a review waits for it.
        Command::Webhook(_) => vector::workers::compiler_with_deadline,
        _ => vector::workers::compiler,
    });
    let result = match command {
        Command::Check(args) => return check::run(&args),
        Command::Audit(args) => return audit::run(&args),
        Command::Vector(args) => return vector::run(&args),
        Command::Manifests(args) => manifests::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Webhook(args) => webhook::run(*args),
        Command::Controller(args) => controller::run(*args),
        Command::Dev(args) => dev::run(&args),
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
    fn no_command_contradicts_itself() {
        super::Cli::command().debug_assert();
    }
}
