//! Command line of a program: the subcommands that every program has.

use clap::{Parser, Subcommand};

use crate::commands;

/// Validate Kubernetes custom resources by one set of rules: offline, in the admission webhook and in the
/// controller.
#[derive(Parser)]
#[command(version, args_override_self = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Validate files without a cluster. Exit codes: 0: all objects are valid; 1: at least one object is invalid;
    /// 2: an input could not be read.
    Check(commands::check::Args),
    /// Run the admission webhook over HTTPS.
    #[command(args_override_self = true)]
    Webhook(Box<commands::webhook::Args>),
    /// Run the controllers, and manage the certificates of the webhook.
    #[command(args_override_self = true)]
    Controller(Box<commands::controller::Args>),
    /// Write the YAML files of an installation. Files that this command has not written stay as they are. Exit codes: 0: the
    /// files are written; 1: one cannot be written, or is out of date (`--check`); 2: one is not from this command, and nothing
    /// was written.
    Manifests(commands::manifests::Args),
    /// List all rules, or explain one.
    Rules(commands::rules::Args),
    /// Validate all stored objects of a cluster, using the current kubeconfig. Exit codes: 0: no object would be
    /// denied; 1: at least one would be denied or not be reconciled; 2: the cluster could not be read.
    Audit(commands::audit::Args),
    /// Report what an installation does, using the current kubeconfig: Pods, CRDs, webhook configurations,
    /// certificates, leader, queues and objects, with the problems first. Exit codes: 0: healthy; 1: problems were
    /// found; 2: the cluster could not be read. What you may not read is unknown, and no problem. With the name of an object,
    /// report its conditions, its status and its last Events. Exit codes: 0: it is ready with its present generation; 1: it
    /// is not, or a user has to act; 2: it could not be read, or was not ready in time (`--wait`).
    #[command(args_override_self = true)]
    Status(commands::status::Args),
    /// Remove the objects and the installation in a safe order, using the current kubeconfig. Prints the
    /// effect on each object, and asks for confirmation. Exit codes: 0: everything is removed; 1: a part still exists; 2: the
    /// removal was not started; 3: it was not confirmed.
    #[command(args_override_self = true)]
    Uninstall(commands::uninstall::Args),
    /// Print a shell completion script.
    Completions(commands::shell::CompletionsArgs),
    /// Write manual pages.
    Man(commands::shell::ManArgs),
    /// Start a real Kubernetes control plane on this machine, install the program and apply the examples.
    #[cfg(feature = "dev")]
    Dev(commands::dev::Args),
}
